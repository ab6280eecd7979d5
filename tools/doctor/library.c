/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* library.c - read a number from a shared library without loading it. */
#include "library.h"

#include <elf.h>
#include <string.h>

struct file {
    const char *data;
    size_t size;
    Elf64_Ehdr head;
};

/* Copy size bytes at offset, if the file has them. */
static bool get(const struct file *file, uint64_t offset, void *out,
                size_t size)
{
    if (offset > file->size || size > file->size - offset)
        return false;
    memcpy(out, file->data + offset, size);
    return true;
}

static bool get_section(const struct file *file, size_t i, Elf64_Shdr *section)
{
    return i < file->head.e_shnum && file->head.e_shoff <= file->size &&
           get(file, file->head.e_shoff + i * sizeof(*section), section,
               sizeof(*section));
}

static bool is_named(const struct file *file, const Elf64_Shdr *names,
                     uint32_t at, const char *name)
{
    char found[64];
    size_t length = strlen(name) + 1;
    return length <= sizeof(found) && names->sh_offset <= file->size &&
           get(file, names->sh_offset + at, found, length) &&
           !memcmp(found, name, length);
}

/* Where the file has what symbol stands for. */
static bool get_value(const struct file *file, const Elf64_Sym *symbol,
                      uint32_t *value)
{
    Elf64_Shdr section;
    return symbol->st_size == sizeof(*value) &&
           get_section(file, symbol->st_shndx, &section) &&
           section.sh_type == SHT_PROGBITS &&
           symbol->st_value >= section.sh_addr &&
           get(file, symbol->st_value - section.sh_addr + section.sh_offset,
               value, sizeof(*value));
}

static bool find(const struct file *file, const Elf64_Shdr *table,
                 const char *name, uint32_t *value)
{
    Elf64_Shdr names;
    Elf64_Sym symbol;
    if (!get_section(file, table->sh_link, &names))
        return false;
    for (uint64_t at = 0; at + sizeof(symbol) <= table->sh_size &&
                          at <= file->size && table->sh_offset <= file->size;
         at += sizeof(symbol)) {
        if (!get(file, table->sh_offset + at, &symbol, sizeof(symbol)))
            return false;
        if (symbol.st_shndx != SHN_UNDEF &&
            is_named(file, &names, symbol.st_name, name))
            return get_value(file, &symbol, value);
    }
    return false;
}

bool library_number(const void *data, size_t size, const char *name,
                    uint32_t *value)
{
    const union {
        uint16_t word;
        unsigned char first;
    } one = {1};
    struct file file = {.data = data, .size = size};
    Elf64_Shdr section;
    if (!get(&file, 0, &file.head, sizeof(file.head)) ||
        memcmp(file.head.e_ident, ELFMAG, SELFMAG) != 0 ||
        file.head.e_ident[EI_CLASS] != ELFCLASS64 ||
        file.head.e_ident[EI_DATA] != (one.first ? ELFDATA2LSB : ELFDATA2MSB))
        return false;
    for (size_t i = 0; get_section(&file, i, &section); i++)
        if (section.sh_type == SHT_DYNSYM)
            return find(&file, &section, name, value);
    return false;
}

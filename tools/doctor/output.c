/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* output.c - what dt-doctor prints. */
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "common/json_output.h"
#include "common/streams.h"
#include "doctor.h"

void output_text(const struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->n_findings; i++) {
        const struct finding *finding = &doctor->findings[i];
        print_line(stdout, "%s", finding->id);
        print_line(stdout, "  seen:    %s", finding->seen);
        print_line(stdout, "  means:   %s", finding->means);
        print_line(stdout, "  to mend: %s", finding->mend);
        print_line(stdout, "%s", "");
    }
    for (size_t i = 0; i < doctor->n_unseen; i++)
        print_line(stdout, "not looked at: %s", doctor->unseen[i]);
    print_line(stdout, doctor->n_findings == 1 ? "%zu finding" : "%zu findings",
               doctor->n_findings);
}

/* JSON takes UTF-8 only, and a text may quote anything. */
static json_t *string(const char *text)
{
    size_t size = 4 * strlen(text) + 1;
    char *shown = malloc(size);
    json_t *made = NULL;
    if (shown) {
        dt_printable(shown, size, text);
        made = json_string(shown);
    }
    free(shown);
    return made;
}

bool output_json(const struct doctor *doctor)
{
    json_t *findings = json_array(), *rest = json_array();
    for (size_t i = 0; i < doctor->n_findings; i++) {
        const struct finding *finding = &doctor->findings[i];
        json_array_append_new(
            findings,
            json_pack("{s:s, s:o, s:o, s:o}", "id", finding->id, "seen",
                      string(finding->seen), "means", string(finding->means),
                      "mend", string(finding->mend)));
    }
    for (size_t i = 0; i < doctor->n_unseen; i++)
        json_array_append_new(rest, string(doctor->unseen[i]));
    json_t *root =
        json_pack("{s:o, s:o}", "findings", findings, "not_looked_at", rest);
    bool done = json_output(stdout, root);
    json_decref(root);
    return done;
}

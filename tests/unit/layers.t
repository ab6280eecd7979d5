#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# layers.t - every room is entered through its header and from above only

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

my $top = abs_path(dirname(abs_path($0)) . '/../..');
my $build = $ENV{DT_BUILD} // "$top/build";

# A room is a folder. The table says by which of its headers other rooms enter
# it ('*': each header is a tool of its own), and which rooms it may enter. The
# public headers are open to all, and a room's headers to the rooms inside it.
my $public = qr{^lib/dt(_grad|_topo)?\.h$};
my %rooms = (
    'lib' => ['dt.h dt_grad.h dt_topo.h', 'lib/base lib/boot lib/coll/api
        lib/coll/engine lib/gpu'],
    'lib/base' => ['*', 'lib'],
    'lib/topo' => ['sources.h', 'lib/base lib/topo/model'],
    'lib/topo/model' => ['model.h kv.h', 'lib lib/base'],
    'lib/topo/sources' => ['', 'lib/base lib/topo lib/topo/model'],
    'lib/topo/sources/hwloc' => ['', 'lib/base lib/topo/model
        lib/topo/sources'],
    'lib/boot' => ['boot.h card.h', 'lib/base'],
    'lib/exec' => ['exec.h', 'lib lib/base'],
    'lib/tl' => ['tl.h board.h matching.h secret.h', 'lib/base'],
    'lib/tl/shm' => ['', 'lib/base lib/tl'],
    'lib/tl/tcp' => ['', 'lib/base lib/tl'],
    'lib/tl/ucx' => ['', 'lib/base lib/tl'],
    'lib/sim' => ['sim.h', 'lib/base lib/tl'],
    'lib/tune' => ['tune.h', 'lib/base'],
    'lib/coll/algorithm' => ['algorithm.h', 'lib/base lib/tune'],
    'lib/coll/node' => ['local.h', 'lib/base lib/coll/algorithm lib/exec
        lib/tl'],
    'lib/coll/engine' => ['engine.h', 'lib/base lib/boot lib/coll/algorithm
        lib/coll/node lib/exec lib/tl lib/tune'],
    'lib/coll/api' => ['api.h', 'lib/base lib/coll/algorithm lib/coll/engine
        lib/exec lib/tl'],
    'lib/gpu' => ['gpu.h attach.h', 'lib/base lib/coll/api lib/coll/engine'],
    'lib/gpu/coll' => ['', 'lib/base lib/coll/algorithm lib/coll/api
        lib/coll/engine lib/exec lib/gpu lib/tl lib/tune'],
    'lib/gpu/cuda' => ['', 'lib lib/base lib/exec lib/gpu'],
    'lib/ckpt/format' => ['format.h', 'lib/base'],
    'lib/ckpt/redundancy' => ['redundancy.h', 'lib/base lib/ckpt
        lib/ckpt/format'],
    'lib/ckpt/load' => ['load.h', 'lib/base lib/ckpt lib/ckpt/format
        lib/ckpt/redundancy'],
    'lib/ckpt/save' => ['save.h', 'lib/base lib/ckpt lib/ckpt/format
        lib/ckpt/redundancy'],
    'lib/ckpt' => ['', 'lib lib/base lib/ckpt/format lib/ckpt/load lib/ckpt/save
        lib/ckpt/redundancy lib/exec lib/gpu'],
    'lib/elastic' => ['', 'lib lib/base'],
    'lib/grad' => ['', 'lib lib/base lib/coll/engine lib/exec
        lib/grad/compress lib/grad/gpu lib/grad/plan'],
    'lib/grad/compress' => ['int8.h', 'lib lib/grad'],
    'lib/grad/gpu' => ['gpus.h stage.h', 'lib lib/base lib/coll/engine
        lib/gpu lib/grad'],
    'lib/grad/plan' => ['gradient.h plan.h', 'lib lib/base lib/coll/engine
        lib/exec lib/grad lib/grad/compress lib/grad/gpu'],
    'spank' => ['', 'lib lib/base lib/topo/model spank/framework
        spank/placement spank/requeue spank/server'],
    'spank/framework' => ['framework.h names.h', 'lib/base spank
        spank/placement spank/server'],
    'spank/placement' => ['discover.h grant.h system.h table.h task.h',
        'lib lib/base lib/topo/model spank spank/framework spank/server'],
    'spank/requeue' => ['requeue.h watch.h', 'lib/base spank'],
    'spank/server' => ['daemon.h rendezvous.h server.h', 'lib/base spank
        spank/framework'],
    'pmix/mesh' => ['address.h auth.h clock.h map.h mesh.h net.h rendezvous.h
        wire.h', 'lib/base'],
    'pmix/membership' => ['membership.h', 'lib/base pmix/mesh'],
    'pmix/server' => ['client.h environ.h info.h library.h proxy_client.h
        server.h server_state.h', 'lib/base pmix/membership pmix/mesh
        pmix/operations'],
    'pmix/operations' => ['operations.h', 'lib/base pmix/membership pmix/mesh
        pmix/server'],
    'pmix/daemon' => ['', 'lib/base pmix/mesh pmix/server'],
    'pmix/run' => ['', 'lib/base pmix/mesh pmix/server'],
    'tools/common' => ['*', 'lib lib/base'],
    'tools/bench' => ['', 'lib lib/base tools/common tools/bench/measure
        tools/bench/pairwise tools/bench/report tools/bench/tune'],
    'tools/bench/measure' => ['element.h gpu_memory.h limit.h measure.h
        pingpong.h', 'lib lib/base lib/gpu tools/bench tools/bench/pairwise'],
    'tools/bench/pairwise' => ['pairwise.h', 'lib lib/base tools/bench
        tools/bench/measure tools/bench/report'],
    'tools/bench/report' => ['json.h output.h report.h', 'lib lib/base
        tools/bench tools/bench/measure'],
    'tools/bench/tune' => ['parameters.h', 'lib lib/base lib/tune tools/bench
        tools/bench/measure tools/bench/pairwise tools/bench/report'],
    'tools/ckpt' => ['', 'lib/base tools/common tools/ckpt/commands
        tools/ckpt/text'],
    'tools/ckpt/commands' => ['', 'lib/base lib/ckpt/format tools/common
        tools/ckpt/files tools/ckpt/text'],
    'tools/ckpt/files' => ['checkpoint.h compose.h directory.h floats.h
        node_directories.h npy.h npy_name.h outfile.h rank_name.h shard_file.h stream.h',
        'lib/base lib/ckpt/format tools/common tools/ckpt/text'],
    'tools/ckpt/text' => ['columns.h describe.h interrupt.h options.h
        terminal.h', 'lib/base lib/ckpt/format tools/common'],
    'tools/doctor' => ['', 'lib lib/base tools/common tools/requeue'],
    'tools/requeue' => ['slurm.h', 'lib lib/base tools/common'],
    'tools/topo' => ['', 'lib lib/base tools/common tools/topo/node
        tools/topo/print'],
    'tools/topo/node' => ['node.h', 'lib lib/base tools/common tools/topo
        tools/topo/print'],
    'tools/topo/print' => ['print.h', 'lib lib/base tools/common
        tools/topo'],
    'doc/examples' => ['', 'lib'],
);

# Where a foreign header may be included.
my %only_in = (
    'pmix' => qr{^(lib/boot/(meet|pmix)\.c|pmix/.*)$},
    'uc[pst]/' => qr{^lib/tl/ucx/.*$},
    'cuda' => qr{^lib/gpu/cuda/.*$},
    'slurm/' => qr{^spank/.*$},
    'hwloc' => qr{^lib/topo/sources/hwloc/.*$},
    'expat' => qr{^lib/topo/sources/xml\.[ch]$},
    'munge' => qr{^pmix/mesh/auth\.c$},
    'sodium' => qr{^lib/tl/secret\.c$},
    'isa-l|xxh|jansson' => qr{^(lib/ckpt|tools)/.*$},
);

use constant {MOST_FILES => 34, LONGEST_CIRCLE => 3};

# ---- what the tree has ----

sub read_file
{
    my ($path) = @_;
    open(my $file, '<', $path) or die "$path: $!";
    local $/;
    return <$file>;
}

# The C files of the product, by path below the tree; without what a build has
# made there.
sub sources
{
    my ($tree) = @_;
    my @found = sort(split /\n/,
        `cd $tree && find lib pmix spank tools doc -name '*.[ch]' 2>/dev/null`);
    return @found;
}

# Each include of the tree: [file, header, path of the header or undef].
sub includes
{
    my ($tree) = @_;
    my @files = sources($tree);
    my %known = map { $_ => 1 } @files;
    my @found;
    for my $file (@files) {
        my $include = qr{^[ \t]*\#[ \t]*include[ \t]*([<"][^>"]+)}m;
        for (read_file("$tree/$file") =~ /$include/g) {
            my ($kind, $header) = (substr($_, 0, 1), substr($_, 1));
            my $path;
            if ($kind eq '"') {
                my $dir = dirname($file);
                ($path) = grep { $known{$_} } map { tidy($_) } (
                    "$dir/$header", "lib/$header",
                    (map { "$_/$header" } roots($file)));
            }
            push @found, [$file, $header, $path, $kind];
        }
    }
    return @found;
}

sub tidy
{
    my ($path) = @_;
    1 while $path =~ s{[^/]+/\.\./}{};
    return $path;
}

# The folders that -I adds to lib/ for a file.
sub roots
{
    my ($file) = @_;
    return ('pmix') if $file =~ m{^pmix/};
    return ('spank') if $file =~ m{^spank/};
    return ($1) if $file =~ m{^(tools/[^/]+)/};
    return ();
}

sub enters
{
    my ($room, $other) = @_;
    return 1 if $room eq $other;
    return 1
        if $room =~ m{^\Q$other\E/} && $other =~ m{^(lib/ckpt|spank|tools/)};
    return grep { $_ eq $other } split ' ', $rooms{$room}[1];
}

# ---- what is wrong with it ----

sub unnamed_rooms
{
    my ($tree) = @_;
    my %seen = map { dirname($_) => 1 } sources($tree);
    return sort grep { !$rooms{$_} } keys %seen;
}

sub full_rooms
{
    my ($tree) = @_;
    my %count;
    $count{dirname($_)}++ for sources($tree);
    return map { "$_ has $count{$_} files" }
        sort grep { $count{$_} > MOST_FILES } keys %count;
}

sub wrong_includes
{
    my ($tree) = @_;
    my @wrong;
    for (includes($tree)) {
        my ($file, $header, $path, $kind) = @$_;
        if ($kind eq '<') {
            push @wrong, "$file: <$header>"
                if grep { $header =~ /^$_/ && $file !~ $only_in{$_} }
                keys %only_in;
            next;
        }
        next if !defined $path || $path =~ $public;
        my ($room, $other) = (dirname($file), dirname($path));
        next if $room eq $other || !$rooms{$room} || !$rooms{$other};
        my $entries = $rooms{$other}[0];
        push @wrong, "$file: \"$header\": $room does not stand on $other"
            unless enters($room, $other);
        push @wrong, "$file: \"$header\" is no entrance of $other"
            unless $entries eq '*'
            || $room =~ m{^\Q$other\E/}
            || grep { $_ eq basename($path) } split ' ', $entries;
    }
    return @wrong;
}

# Strongly connected parts of a graph that are larger than LONGEST_CIRCLE
# (Tarjan, Depth-First Search and Linear Graph Algorithms, 1972).
sub circles
{
    my ($edges) = @_;
    my ($count, %index, %low, %open, @stack, @found) = (0);
    my $visit;
    $visit = sub {
        my ($node) = @_;
        $index{$node} = $low{$node} = $count++;
        push @stack, $node;
        $open{$node} = 1;
        for my $next (sort keys %{$edges->{$node} // {}}) {
            if (!defined $index{$next}) {
                $visit->($next);
                $low{$node} = $low{$next} if $low{$next} < $low{$node};
            } elsif ($open{$next} && $index{$next} < $low{$node}) {
                $low{$node} = $index{$next};
            }
        }
        return if $low{$node} != $index{$node};
        my @part;
        do {
            push @part, pop @stack;
            delete $open{$part[-1]};
        } while ($part[-1] ne $node);
        push @found, join(' ', sort @part) if @part > LONGEST_CIRCLE;
    };
    no warnings 'recursion';
    for (sort keys %$edges) {
        $visit->($_) unless defined $index{$_};
    }
    return sort @found;
}

# x.c and x.h are one; dt.h is what stands above all, dt.c what is below.
sub noun
{
    my ($file) = @_;
    return $file =~ m{^lib/dt\.[ch]$} ? $file : $file =~ s/\.[ch]$//r;
}

sub include_circles
{
    my ($tree) = @_;
    my %edges;
    for (includes($tree)) {
        my ($file, undef, $path) = @$_;
        next unless defined $path;
        my ($from, $to) = (noun($file), noun($path));
        $edges{$from}{$to} = 1 if $from ne $to;
    }
    return circles(\%edges);
}

# What the objects of a build define and call: {source => {symbol => 1}} each.
sub symbols
{
    my ($build, @files) = @_;
    my %source = map { s/\.c$//r => 1 } grep { /\.c$/ } @files;
    my (%defines, %calls);
    for my $object (split /\n/,
        `cd $build && find lib pmix spank tools -name '*.o' 2>/dev/null`)
    {
        my $name = substr($object, 0, -2) =~ s{\.libs/}{}r;
        # automake puts the library's or program's name in front
        while (!$source{$name} && $name =~ m{^(.*/)?[^/]*?-([^/]*)$}) {
            $name = ($1 // '') . $2;
        }
        next unless $source{$name};
        for (split /\n/, `nm -g $build/$object 2>/dev/null`) {
            next unless /([A-Z]) (dt_\w+)$/;
            my $list = $1 eq 'U' ? \%calls : \%defines;
            $list->{$name}{$2} = 1;
        }
    }
    return (\%defines, \%calls);
}

# Who calls whom; but for public functions, and the module's own copies of libdt's
# functions, which call libdt.
sub call_graph
{
    my ($defines, $calls) = @_;
    my (%home, %edges);
    my %public = map { $_ => 1 } map { split /\n/, read_file("$top/$_") }
        'lib/libdt.sym', 'lib/libdt_topo.sym';
    for my $name (sort grep { $_ ne 'lib/gpu/coll/host' } keys %$defines) {
        $home{$_} = $name for keys %{$defines->{$name}};
    }
    for my $name (keys %$calls) {
        for (grep { !$public{$_} } keys %{$calls->{$name}}) {
            $edges{$name}{$home{$_}} = 1
                if defined $home{$_} && $home{$_} ne $name;
        }
    }
    return \%edges;
}

# A call into a room that this one may not enter; a room that may be entered is
# open with all that is inside it. The public functions are open to all.
sub wrong_calls
{
    my ($edges) = @_;
    my @wrong;
    for my $from (sort keys %$edges) {
        for my $to (sort keys %{$edges->{$from}}) {
            my ($room, $other) = (dirname($from), dirname($to));
            my $open = enters($room, $other);
            for (my $outer = $other; !$open && $outer =~ s{^(.*/.*)/.*$}{$1};) {
                $open = $room eq $outer || enters($room, $outer);
            }
            push @wrong, "$from calls $to" unless $open;
        }
    }
    return @wrong;
}

# Which of our and of the foreign libraries each library links: [name, word].
sub links
{
    my (@makefiles) = @_;
    my @found;
    for (map { read_file($_) =~ s/\\\n//gr } @makefiles) {
        while (/^(\w+_la)_LIBADD *\+?=(.*)$/mg) {
            my ($name, $words) = ($1, $2);
            push @found, map { [$name, $_] } split ' ', $words;
        }
    }
    return @found;
}

my %links = (
    'lib_libdt_base_la' => '',
    'lib_libdt_model_la' => 'lib/libdt-base.la',
    'lib_libdt_sources_la' => 'lib/libdt-model.la lib/libdt-base.la $(HWLOC_LIBS)
        $(EXPAT_LIBS)',
    'lib_libdt_boot_la' => 'lib/libdt-base.la $(PMIX_LIBS)',
    'lib_libdt_exec_la' => 'lib/libdt-base.la',
    'lib_libdt_tl_la' => 'lib/libdt-base.la $(UCX_LIBS) $(SODIUM_LIBS)',
    'lib_libdt_tune_la' => 'lib/libdt-base.la',
    'lib_libdt_coll_la' => '',
    'lib_libdt_gpu_la' => 'lib/libdt-base.la',
    'lib_libdt_cuda_la' => 'lib/libdt-gpu-coll.la lib/libdt-kernels.la
        lib/libdt-tune.la lib/libdt-base.la',
    'lib_libdt_ckpt_format_la' => '$(JANSSON_LIBS) $(ISAL_LIBS)',
    'lib_libdt_ckpt_la' => 'lib/libdt-ckpt-format.la $(JANSSON_LIBS) $(ISAL_LIBS)',
    'spank_libdt_spank_la' => '',
    'spank_spank_dt_la' => 'spank/libdt-spank.la lib/libdt-model.la
        lib/libdt-base.la',
    'pmix_libdt_mesh_la' => 'lib/libdt-base.la $(MUNGE_LIBS)',
    'pmix_libdt_pmix_la' => 'pmix/libdt-mesh.la lib/libdt-base.la $(PMIX_LIBS)',
);

sub wrong_links
{
    my @wrong;
    for (links(@_)) {
        my ($name, $word) = @$_;
        next if $word !~ m{\.la$|_LIBS\)$} || !exists $links{$name};
        push @wrong, "$name links $word"
            unless grep { $_ eq $word } split ' ', $links{$name};
    }
    return @wrong;
}

# ---- this tree, and this build ----

sub empty
{
    my ($name, @found) = @_;
    is(join("\n", @found), '', $name);
}

my @makefiles = split /\n/, `find $top -name build -prune -o -name Makemodule.am -print`;

empty('every folder is a room of the table', unnamed_rooms($top));
empty('no room is too full', full_rooms($top));
empty('rooms are entered from above and through their headers', wrong_includes($top));
empty('no long circle of includes', include_circles($top));
empty('no link line goes upward', wrong_links(@makefiles));

SKIP: {
    skip "$build has no objects", 3 unless -e "$build/lib/.libs/libdt.so";
    my $calls = call_graph(symbols($build, sources($top)));
    cmp_ok(scalar(keys %$calls), '>', 200, 'the objects of the build are read');
    empty('no call goes upward', wrong_calls($calls));
    empty('no long circle of calls', circles($calls));
}

# dt-ckpt reads and writes files; of libdt's calls it has those that need no
# other rank.
SKIP: {
    skip 'dt-ckpt is not built', 1 unless -e "$build/tools/dt-ckpt";
    empty('dt-ckpt communicates with no rank', grep {
        / T dt_(init|comm|all|bcast|send|recv|vote)/
    } split /\n/, `nm $build/tools/dt-ckpt`);
}

# ---- the checks see what is wrong ----

my $tmp = tempdir(CLEANUP => 1);

sub put
{
    my ($path, $text) = @_;
    make_path(dirname("$tmp/$path"));
    open(my $file, '>', "$tmp/$path") or die "$path: $!";
    print $file $text;
    close($file);
}


put('lib/base/error.h', '');
put('lib/coll/engine/engine.h', '');
put('lib/coll/engine/comm.h', '#  include <ucp/api/ucp.h>');
put('lib/ckpt/save/save.h', '');
put('lib/gpu/coll/call.c', '#include "coll/engine/comm.h"');
put('lib/tl/ucx/ucx.c', '#include "coll/engine/engine.h"');
put('spank/plugin.c', "#include <pmix_server.h>\n#include \"base/error.h\"");
put('tools/ckpt/commands/show.c', '#include "ckpt/save/save.h"');
put('lib/attic/old.c', '');
is(join("\n", sort(wrong_includes($tmp))), <<'END' =~ s/\n$//r, 'a wrong include is seen');
lib/coll/engine/comm.h: <ucp/api/ucp.h>
lib/gpu/coll/call.c: "coll/engine/comm.h" is no entrance of lib/coll/engine
lib/tl/ucx/ucx.c: "coll/engine/engine.h": lib/tl/ucx does not stand on lib/coll/engine
spank/plugin.c: <pmix_server.h>
tools/ckpt/commands/show.c: "ckpt/save/save.h": tools/ckpt/commands does not stand on lib/ckpt/save
END
is(join(' ', unnamed_rooms($tmp)), 'lib/attic', 'a new folder is seen');
put("lib/base/tool$_.h", '') for 1 .. MOST_FILES;
is(join(' ', full_rooms($tmp)), 'lib/base has ' . (MOST_FILES + 1) . ' files',
    'a full room is seen');
put("lib/exec/$_->[0].h", "#include \"exec/$_->[1].h\"")
    for ['a', 'b'], ['b', 'c'], ['c', 'd'], ['d', 'a'];
is(join(' ', include_circles($tmp)), 'lib/exec/a lib/exec/b lib/exec/c lib/exec/d',
    'a circle of four is seen');
put('Makemodule.am', <<'END');
lib_libdt_base_la_LIBADD = lib/libdt-coll.la
lib_libdt_cuda_la_LIBADD = lib/libdt-base.la lib/libdt-coll.la -ldl
spank_spank_dt_la_LIBADD = lib/libdt-model.la \\
	$(UCX_LIBS)
END
is(join("\n", wrong_links("$tmp/Makemodule.am")), <<'END' =~ s/\n$//r, 'a link upward is seen');
lib_libdt_base_la links lib/libdt-coll.la
lib_libdt_cuda_la links lib/libdt-coll.la
spank_spank_dt_la links $(UCX_LIBS)
END
my %upward = ('lib/exec/exec' =>
        {'lib/coll/engine/comm' => 1, 'lib/base/error' => 1});
is(join(' ', wrong_calls(\%upward)), 'lib/exec/exec calls lib/coll/engine/comm',
    'a call upward is seen');

done_testing();

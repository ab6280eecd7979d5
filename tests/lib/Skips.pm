# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# Skips.pm - what prove runs the tests with (`prove --harness Skips`): it says
# what was skipped and why. A plan without tests and without a reason fails. With
# CI set, so do a skip that tests/skips does not allow, and a run in which no
# test was executed.
package Skips;
use strict;
use warnings;
use parent 'TAP::Harness';

sub new
{
    my ($class, $args) = @_;
    my $self = $class->SUPER::new($args);
    $self->{skips} = [];
    $self->{executed} = 0;
    return $self;
}

# Each test file has a parser of its own, also where several run at once.
sub make_parser
{
    my ($self, $job) = @_;
    my ($parser, $session) = $self->SUPER::make_parser($job);
    my $file = $job->description;
    $parser->callback(plan => sub {
        my ($plan) = @_;
        push @{$self->{skips}}, [$file, $plan->explanation]
            if $plan->has_skip || $plan->tests_planned == 0;
    });
    $parser->callback(test => sub {
        my ($test) = @_;
        if ($test->has_skip) {
            my $name = $test->description =~ s/^- //r;
            push @{$self->{skips}}, [$file, "$name # " . $test->explanation];
        } else {
            $self->{executed}++;
        }
    });
    return ($parser, $session);
}

# The patterns of tests/skips, beside which a reason stands.
sub allowed
{
    my ($path) = __FILE__ =~ m{^(.*)/};
    open my $in, '<', "$path/../skips" or die "tests/skips: $!\n";
    my @patterns;
    while (my $line = <$in>) {
        next if $line =~ /^\s*(#|$)/;
        my ($pattern) = split /\t/, $line;
        push @patterns, qr/$pattern/;
    }
    return @patterns;
}

sub runtests
{
    my ($self, @tests) = @_;
    my $aggregate = $self->SUPER::runtests(@tests);
    my @allowed = allowed();
    my $wrong = 0;
    for my $skip (@{$self->{skips}}) {
        my ($file, $why) = @$skip;
        my $text = "$file: " . ($why || 'no reason');
        if (!$why || $ENV{CI} && !grep { $text =~ $_ } @allowed) {
            print "# *** not in tests/skips: $text\n";
            $wrong = 1;
        } else {
            print "skipped: $text\n";
        }
    }
    if (@tests && !$self->{executed}) {
        print "# *** no test was executed\n";
        $wrong = 1 if $ENV{CI};
    }
    exit 1 if $wrong;
    return $aggregate;
}

1;

/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the slurm-dt developers */
/* gloo.cc - Gloo; variants "ring" and "bcube" of gloo::allreduce, "chunked"
 * and "hd" of its older algorithms. The ranks rendezvous in the folder BENCH_STORE
 * and talk through the interface GLOO_SOCKET_IFNAME. */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "contender.h"

namespace
{

using Shape = std::pair<void *, size_t>;

struct Job {
    std::string variant;
    std::shared_ptr<gloo::rendezvous::Context> context;
    /* the older algorithms belong to a buffer */
    std::map<Shape, std::unique_ptr<gloo::Algorithm>> made;
};
Job *job;

int start(const char *variant, int *rank, int *size)
{
    const char *iface = getenv("GLOO_SOCKET_IFNAME");
    const char *folder = getenv("BENCH_STORE");
    if (!iface || !folder)
        return -1;
    try {
        gloo::transport::tcp::attr attr;
        attr.iface = iface;
        auto device = gloo::transport::tcp::CreateDevice(attr);
        gloo::rendezvous::FileStore store(folder);
        job = new Job;
        job->variant = variant;
        job->context =
            std::make_shared<gloo::rendezvous::Context>(*rank, *size);
        job->context->connectFullMesh(store, device);
    } catch (const std::exception &e) {
        fprintf(stderr, "bench: Gloo: %s\n", e.what());
        return -1;
    }
    return 0;
}

template <typename T> void make(const Shape &shape)
{
    std::vector<T *> ptrs{static_cast<T *>(shape.first)};
    int count = static_cast<int>(shape.second);
    if (job->variant == "hd")
        job->made[shape].reset(
            new gloo::AllreduceHalvingDoubling<T>(job->context, ptrs, count));
    else
        job->made[shape].reset(
            new gloo::AllreduceRingChunked<T>(job->context, ptrs, count));
}

template <typename T> void reduce(const void *in, void *out, size_t count)
{
    if (job->variant == "hd" || job->variant == "chunked") {
        Shape shape(out, count);
        if (!job->made[shape])
            make<T>(shape);
        job->made[shape]->run();
        return;
    }
    gloo::AllreduceOptions options(job->context);
    options.setAlgorithm(job->variant == "bcube"
                             ? gloo::AllreduceOptions::Algorithm::BCUBE
                             : gloo::AllreduceOptions::Algorithm::RING);
    if (in != out)
        options.setInput(static_cast<T *>(const_cast<void *>(in)), count);
    options.setOutput(static_cast<T *>(out), count);
    void (*sum)(void *, const void *, const void *, size_t) = &gloo::sum<T>;
    options.setReduceFunction(sum);
    gloo::allreduce(options);
}

int allreduce(const void *in, void *out, size_t count, enum element type)
{
    if (type == ELEMENT_BF16)
        return 1;
    try {
        if (type == ELEMENT_F32)
            reduce<float>(in, out, count);
        else
            reduce<gloo::float16>(in, out, count);
    } catch (const std::exception &e) {
        fprintf(stderr, "bench: Gloo: %s\n", e.what());
        return -1;
    }
    return 0;
}

void stop()
{
    /* without the connections' last words, which peers that left miss */
    fflush(nullptr);
    _Exit(0);
}

} // namespace

int main(int argc, char **argv)
{
    struct contender gloo = {};
    /* the older algorithms are in place only: so all are */
    gloo.in_place = true;
    gloo.start = start;
    gloo.allreduce = allreduce;
    gloo.stop = stop;
    return bench_main(argc, argv, &gloo);
}

# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the slurm-dt developers
# tensorflow.py - TensorFlow's workers, which read TF_CONFIG
import sys

sys.path[0] += "/lib"  # this file is not the module tensorflow
import tensorflow as tf

import group

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
size = strategy.num_replicas_in_sync
mine = group.row(rank)
samples = group.SAMPLES[rank::size]


rows = strategy.gather(strategy.run(lambda: tf.constant([mine])), axis=0)
group.check(rows.numpy().tolist(), mine)
weights = [0.0, 0.0]
for _ in range(group.STEPS):
    slope = tf.constant(group.gradient(weights, samples))
    slope = strategy.reduce("MEAN", strategy.run(tf.identity, (slope,)),
                            axis=None).numpy().tolist()
    weights = [w - group.RATE * s for w, s in zip(weights, slope)]
group.compare(weights)
print(f"OK rank {rank} of {size}", flush=True)

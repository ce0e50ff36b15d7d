"""A small TensorFlow training loop with TensorFlow's own profiler server. Stopped by killing it.

usage: training_tensorflow.py PORT PROGRESS_FILE
"""

import sys
import time
from pathlib import Path

import tensorflow as tf

REST_SECONDS = 0.01  # between steps, for the tests beside


def main(port: int, progress: Path) -> None:
    tf.profiler.experimental.server.start(port)
    step = tf.function(lambda x: tf.tanh(tf.linalg.matmul(x, x)) / 2)
    x = tf.ones((256, 256))
    number = 0
    while True:
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            x = step(x)
        number += 1
        progress.write_text(str(number))
        time.sleep(REST_SECONDS)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))

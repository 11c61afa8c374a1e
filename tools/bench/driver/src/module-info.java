/** What {@code tools/bench/run} starts for each image. */
module driver {
  requires ucm.api;
  requires ucm.pipeline;
}

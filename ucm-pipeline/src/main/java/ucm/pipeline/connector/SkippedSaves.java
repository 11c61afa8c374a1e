package ucm.pipeline.connector;

import ucm.api.BlockIds;

/** A store implements this to learn of blocks that a plan saves and a worker connector does not dump. */
public interface SkippedSaves {

  /**
   * Blocks that a step does not dump, or not all layers of: what they were computed from could not be
   * loaded, or the step was given up. Called by the thread that ends the step, once for each request, when
   * no task uses the engine's memory any more.
   */
  void skipped(BlockIds ids);
}

/**
 * Finds stores, chains them, and serves the engine through the chain.
 *
 * <p>{@link ucm.pipeline.UcmConfig} reads the configuration, {@link ucm.pipeline.StoreCatalog} finds
 * the stores, {@link ucm.pipeline.Pipeline} makes one store of several.
 *
 * @uses ucm.api.Store the stages of pipelines, in the boot layer and in one layer per plugin
 * @uses ucm.pipeline.BlockHashing other ways of naming blocks than the original's
 */
@org.jspecify.annotations.NullMarked
module ucm.pipeline {
  requires static org.jspecify;
  requires org.slf4j;
  requires org.snakeyaml.engine;
  requires tools.jackson.core;
  requires tools.jackson.dataformat.yaml;
  requires transitive ucm.api;
  requires ucm.lite;

  exports ucm.pipeline;
  exports ucm.pipeline.connector;

  uses ucm.api.Store;
  uses ucm.pipeline.BlockHashing;
}

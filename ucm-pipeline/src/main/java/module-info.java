/**
 * Finds stores, chains them, and serves the engine through the chain.
 *
 * <p>{@link ucm.pipeline.config.UcmConfig} reads the configuration, {@link ucm.pipeline.catalog.StoreCatalog} finds
 * the stores, {@link ucm.pipeline.Pipeline} makes one store of several.
 *
 * @uses ucm.api.admin.HealthCheck what looks at the machine, in the same places as stores
 * @uses ucm.api.Store the stages of pipelines, in the boot layer and in one layer per plugin
 * @uses ucm.pipeline.hash.BlockHashing other ways of naming blocks than the original's
 */
@org.jspecify.annotations.NullMarked
module ucm.pipeline {
  requires com.carrotsearch.hppc;
  requires static org.jspecify;
  requires org.slf4j;
  requires org.snakeyaml.engine;
  requires tools.jackson.core;
  requires tools.jackson.dataformat.yaml;
  requires transitive ucm.api;
  requires ucm.lite;
  requires ucm.platform;

  exports ucm.pipeline;
  exports ucm.pipeline.catalog;
  exports ucm.pipeline.config;
  exports ucm.pipeline.connector;
  exports ucm.pipeline.connector.engine;
  exports ucm.pipeline.connector.statistics;
  exports ucm.pipeline.convert;
  exports ucm.pipeline.hash;

  uses ucm.api.admin.HealthCheck;
  uses ucm.api.Store;
  uses ucm.pipeline.hash.BlockHashing;
}

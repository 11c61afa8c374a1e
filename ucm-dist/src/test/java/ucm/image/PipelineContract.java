package ucm.image;

import ucm.api.Store;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.testkit.StoreContract;

/** A pipeline is a store like any other. */
abstract class PipelineContract extends StoreContract {

  private final PipelineSpec pipeline;

  PipelineContract(String pipeline) {
    this.pipeline = PipelineSpec.parse(pipeline);
  }

  @Override
  protected final Store newStore() {
    return Pipeline.of(pipeline, StoreCatalog.find());
  }

  /** It is made by its factory methods. */
  @Override
  protected final boolean isService() {
    return false;
  }
}

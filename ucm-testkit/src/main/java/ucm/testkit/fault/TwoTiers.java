package ucm.testkit.fault;

import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.config.StoreConfig;
import ucm.testkit.ForwardingStore;

/**
 * A stage and the last stage below it as one store, which configures, opens and closes both. Every other call
 * goes to the upper one.
 */
public final class TwoTiers extends ForwardingStore {

  private final Store upper;
  private final Store lower;

  /** Takes two stages that are not configured. */
  public TwoTiers(Store upper, Store lower) {
    this.upper = upper;
    this.lower = lower;
  }

  @Override
  protected Store inner() {
    return upper;
  }

  @Override
  public void configure(StoreConfig config) {
    upper.configure(config);
    lower.configure(config);
  }

  @Override
  public void open(StoreContext context) {
    lower.open(context);
    upper.open(StoreContext.of(lower));
  }

  @Override
  public void close() {
    upper.close();
    lower.close();
  }
}

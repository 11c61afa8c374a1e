package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import ucm.api.Store;
import ucm.device.Device;
import ucm.testkit.StoreContract;

/** The contract of a store, for an engine with its memory on a GPU, of which nothing may be left. */
abstract class OnDeviceContract extends StoreContract {

  private final SimulatedCuda cuda = SimulatedCuda.load();
  private final Map<String, Long> before = cuda.kept();
  private final List<Store> made = new ArrayList<>();
  private final Device device = new CudaDriver().open(0);

  /** The store under test, which knows what to do with memory of a GPU. */
  abstract Store newDeviceStore();

  @AfterEach
  void leavesNothingOnTheDevice() {
    // The base class does so as well, but after this.
    made.forEach(Store::close);
    device.close();
    assertThat(cuda.kept()).isEqualTo(before);
    assertThat(cuda.count("unregistered")).isZero();
    cuda.requireNoMisuse();
  }

  @Override
  protected final Store newStore() {
    Store store = new OnDeviceStore(cuda, device, newDeviceStore());
    made.add(store);
    return store;
  }

  /** It is wrapped. */
  @Override
  protected final boolean isService() {
    return false;
  }
}

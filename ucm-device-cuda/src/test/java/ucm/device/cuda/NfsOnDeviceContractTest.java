package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.device.Device;
import ucm.store.nfs.NfsStore;
import ucm.testkit.StoreContract;

/** The contract of a store, for Nfs and an engine with its memory on a GPU: four buffers do. */
final class NfsOnDeviceContractTest extends StoreContract {

  private final SimulatedCuda cuda = SimulatedCuda.load();
  private final Map<String, Long> before = cuda.kept();
  private final List<Store> made = new ArrayList<>();
  private final Device device = new CudaDriver().open(0);

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
  protected Store newStore() {
    Store store = new OnDeviceStore(cuda, device, new NfsStore());
    made.add(store);
    return store;
  }

  /** It is wrapped. */
  @Override
  protected boolean isService() {
    return false;
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of(
        "storage_backends",
        directory.toString(),
        "buffer_number",
        4,
        "transferStreamNumber",
        2,
        "nfs_device",
        "cuda");
  }
}

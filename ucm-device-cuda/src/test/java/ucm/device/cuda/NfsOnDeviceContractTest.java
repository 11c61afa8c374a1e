package ucm.device.cuda;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.store.nfs.NfsStore;

/** The contract of a store, for Nfs and an engine with its memory on a GPU: four buffers do. */
final class NfsOnDeviceContractTest extends OnDeviceContract {

  @Override
  Store newDeviceStore() {
    return new NfsStore();
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

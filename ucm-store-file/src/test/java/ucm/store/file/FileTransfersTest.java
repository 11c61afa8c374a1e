package ucm.store.file;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.transfer.TransferJob;
import ucm.testkit.BlockBytes;

final class FileTransfersTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 4096, 4096);

  @Test
  void namesTasksAsTheOriginal(@TempDir Path directory) throws Exception {
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      MemoryRegion host = MemoryRegion.host(Arena.ofAuto().allocate(4096));
      Transfer transfer =
          Transfer.packed(LAYOUT).shard(BlockBytes.ids(1, 1), 0, 0).piece(host, 0).build();
      TransferTask task = new TransferTask(17, transfer);
      TransferJob job =
          new TransferJob(task, true, null, stores.open().health(), System::nanoTime, 1);
      assertThat(FileTransfers.name(LocalFileStore.KIND, job))
          .isEqualTo("Local task(17,Cache2Backend,1,4096)");
    }
  }
}

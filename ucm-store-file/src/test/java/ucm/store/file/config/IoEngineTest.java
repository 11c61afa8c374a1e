package ucm.store.file.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.StoreException;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.LocalFileStore;

final class IoEngineTest {

  @ParameterizedTest
  @CsvSource({
    "aio, " + Errno.EAGAIN + ", EAGAIN, fs.aio-max-nr",
    "aio, " + Errno.ENOSYS + ", ENOSYS, does not allow it",
    "aio, " + Errno.EPERM + ", EPERM, does not allow it"
  })
  void saysWhichKeyToSetWhenTheKernelRefuses(String kind, int errno, String name, String hint) {
    StoreConfig config =
        StoreConfig.of(
            Map.of(
                "storage_backends",
                "/cache",
                "block_size",
                4096,
                "io_direct",
                true,
                "local_io_engine",
                kind));
    try (IoEngine engine =
        new IoEngine(
            FileStoreConfig.from(LocalFileStore.KIND, config).orElseThrow(),
            new LibcFileOperations(),
            depth -> {
              throw new FileException("set-up", "a queue of " + depth, errno);
            })) {
      assertThat(config.problems()).isEmpty();
      assertThatThrownBy(engine::probe)
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("local_io_engine: " + kind)
          .hasMessageContaining(name)
          .hasMessageContaining(hint)
          .hasMessageContaining("local_io_engine: psync");
    }
  }
}

package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.StoreConfig;
import ucm.api.StoreException;
import ucm.store.common.Errno;
import ucm.store.common.FileException;
import ucm.store.common.LibcFiles;

final class IoEngineTest {

  @ParameterizedTest
  @CsvSource({
    "aio, " + Errno.EAGAIN + ", EAGAIN, fs.aio-max-nr",
    "aio, " + Errno.ENOSYS + ", ENOSYS, does not allow it",
    "io_uring, " + Errno.ENOSYS + ", ENOSYS, does not allow it",
    "io_uring, " + Errno.EPERM + ", EPERM, does not allow it"
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
                "posix_io_engine",
                kind));
    try (IoEngine engine =
        new IoEngine(
            PosixConfig.from(StoreKind.POSIX, config).orElseThrow(),
            new LibcFiles(),
            depth -> {
              throw new FileException("set-up", "a queue of " + depth, errno);
            })) {
      assertThat(config.problems()).isEmpty();
      assertThatThrownBy(engine::probe)
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("posix_io_engine: " + kind)
          .hasMessageContaining(name)
          .hasMessageContaining(hint)
          .hasMessageContaining("posix_io_engine: psync");
    }
  }
}

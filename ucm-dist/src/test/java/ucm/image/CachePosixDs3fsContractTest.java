package ucm.image;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import ucm.api.BlockLayout;
import ucm.testkit.fault.SimulatedLibrary;

/** The pipeline with local disks above 3FS, on the simulation of its library, is a store like any other. */
@Tag("full")
final class CachePosixDs3fsContractTest extends PipelineContract {

  private static final long IOV_BYTES = 16 << 20;
  private static final Path SOURCE = Path.of("../ucm-store-ds3fs/src/test/c/sim_hf3fs.c");
  private static final Path LIBRARY =
      Path.of("target/sim/libhf3fs_api_shared.so").toAbsolutePath().normalize();

  CachePosixDs3fsContractTest() {
    super("Cache|Posix|Ds3fs");
  }

  @BeforeAll
  static void build() {
    SimulatedLibrary.build(SOURCE, LIBRARY);
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    try (Arena arena = Arena.ofConfined()) {
      new SimulatedLibrary(LIBRARY)
          .call(
              "sim_mounts",
              FunctionDescriptor.ofVoid(ValueLayout.ADDRESS),
              arena.allocateFrom(directory.toString()));
    }
    return Map.of(
        "posix_storage_backends",
        directory.resolve("local").toString(),
        "storage_backends",
        directory.resolve("shared").toString(),
        "cache_buffer_capacity_gb",
        0.1,
        "stream_number",
        4,
        "iov_read_size",
        IOV_BYTES,
        "iov_write_size",
        IOV_BYTES,
        "ds3fs_library_path",
        LIBRARY.toString());
  }
}

package ucm.server.staging;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.Objects;
import ucm.api.MemoryRegion;

/**
 * Memory of an engine that holds its chunks one behind the other: a file of tmpfs that the engine has open,
 * and may have unlinked. It is found by the engine's process and descriptor, and mapped once. Its owner
 * closes it when nothing uses it any more.
 */
public final class EngineRegion implements AutoCloseable {

  private static final Path SHARED_MEMORY = Path.of("/dev/shm");

  private final Arena arena = Arena.ofShared();
  private final MemoryRegion memory;
  private final long stride;
  private final int chunks;

  private EngineRegion(FileChannel file, long byteSize, long stride) throws IOException {
    memory = MemoryRegion.host(file.map(MapMode.READ_WRITE, 0, byteSize, arena));
    this.stride = stride;
    chunks = Math.toIntExact(byteSize / stride);
  }

  /**
   * Maps the memory of an engine.
   *
   * @param processId the engine's process, as it is called here
   * @param descriptor the number of the file there
   * @param byteSize all of it
   * @param inode its number in its file system, which tells a process of another namespace from the engine
   * @param stride bytes from one chunk to the next
   * @throws IOException when that is not a file of this user in memory with that size and number
   */
  public static EngineRegion open(
      int processId, int descriptor, long byteSize, long inode, long stride) throws IOException {
    Path path = Path.of("/proc", Integer.toString(processId), "fd", Integer.toString(descriptor));
    try (FileChannel file =
        FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      // The attributes of what the link leads to; it is a name of what is open, not a path.
      Map<String, Object> found = Files.readAttributes(path, "unix:dev,ino,uid,isRegularFile");
      Object self = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
      if (!Boolean.TRUE.equals(found.get("isRegularFile"))
          || !self.equals(found.get("uid"))
          || !Long.valueOf(inode).equals(found.get("ino"))
          || file.size() != byteSize
          || !Files.getAttribute(SHARED_MEMORY, "unix:dev").equals(found.get("dev"))) {
        throw new IOException(
            "%s is not the %s bytes of shared memory that the engine announced: found %s"
                .formatted(path, byteSize, found));
      }
      return new EngineRegion(file, byteSize, stride);
    }
  }

  /** What transfers point into. */
  public MemoryRegion memory() {
    return memory;
  }

  /**
   * Where a chunk starts, in bytes.
   *
   * @throws IndexOutOfBoundsException when there is no such chunk
   */
  public long offset(int chunk) {
    return Objects.checkIndex(chunk, chunks) * stride;
  }

  /** Unmaps it. */
  @Override
  public void close() {
    arena.close();
  }
}

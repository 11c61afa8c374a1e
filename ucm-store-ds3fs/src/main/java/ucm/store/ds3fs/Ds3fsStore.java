package ucm.store.ds3fs;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.MemoryProvider;
import ucm.api.MemoryRegion;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreName;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.platform.io.IoQueues;
import ucm.platform.libc.FileException;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.FileStore;
import ucm.store.file.config.StoreKind;

/**
 * Keeps blocks in files of 3FS. Files are made, named and removed by ordinary calls through the FUSE
 * mount, as a {@link FileStore} does it; their bytes go through 3FS's user-space rings (USRBIO), past the
 * kernel. A last stage.
 *
 * <p>USRBIO reads into, and writes from, memory that it maps. An upper stage that takes its memory from
 * {@link #offerMemory} saves the copy; all other memory goes through memory of this store.
 */
@StoreName("Ds3fs")
public final class Ds3fsStore extends FileStore implements MemoryProvider {

  static final StoreKind KIND = new StoreKind("Ds3fs", false);
  private static final long BUFFER_GIB = 64;

  private final RegisteredFiles registered;
  private @Nullable Ds3fsConfig config;
  private volatile @Nullable RingQueues queues;

  /** A store that is not configured. */
  public Ds3fsStore() {
    this(new RegisteredFiles());
  }

  private Ds3fsStore(RegisteredFiles registered) {
    super(KIND, new Ds3fsFiles(new LibcFileOperations(), registered));
    this.registered = registered;
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return Ds3fsConfig.keys(super.configKeys());
  }

  /** A buffer size for a {@code Cache} above, as the original has it. */
  @Override
  public Map<String, Object> suggestions() {
    return Map.of("buffer_size", BUFFER_GIB);
  }

  @Override
  protected StoreConfig commonNames(StoreConfig given) {
    return Ds3fsConfig.ofFiles(given);
  }

  @Override
  protected void doConfigure(StoreConfig ofFiles) {
    config = Ds3fsConfig.from(ofFiles);
    super.doConfigure(ofFiles);
  }

  /** Whether it has the folder for files being written that no other store has. */
  @Override
  public boolean recognizes(Path directory) {
    return Files.isDirectory(directory.resolve(Ds3fsFiles.TEMP_FOLDER));
  }

  @Override
  protected void doOpen(StoreContext context) {
    try {
      super.doOpen(context);
    } catch (RuntimeException e) {
      RingQueues opened = queues;
      if (opened != null) {
        opened.close();
      }
      throw e;
    }
  }

  @Override
  protected @Nullable IoQueues openQueues(StoreContext context) {
    Ds3fsConfig known = Objects.requireNonNull(config);
    UsrbioLibrary.require(known.library());
    Map<String, List<String>> found = Mount.find(known.directories(), known.mountPoint());
    String problem = SharedMemorySpace.now().problem(known, found.size());
    if (problem != null) {
      throw new StoreException(problem);
    }
    List<Mount> mounts = new ArrayList<>();
    try {
      found.forEach(
          (point, directories) ->
              mounts.add(new Mount(point, directories, known, context.metrics())));
    } catch (FileException e) {
      mounts.forEach(Mount::close);
      throw new StoreException(
          ("Ds3fs cannot get memory that 3FS shares: %s; see that the FUSE client of 3FS runs on"
               + " this machine, in a container that it shares /dev/shm with, and that it may lock"
               + " memory (ulimit -l unlimited)")
              .formatted(e.getMessage()),
          e);
    }
    registered.on(mounts);
    RingQueues opened = new RingQueues(mounts, registered, known);
    queues = opened;
    return opened;
  }

  @Override
  public @Nullable MemoryRegion offerMemory(long byteSize) {
    RingQueues open = queues;
    return open == null ? null : open.offer(byteSize);
  }
}

package ucm.store.posix;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import ucm.store.common.FileException;
import ucm.store.common.FileSeam;
import ucm.store.common.FileStat;
import ucm.store.common.IoVector;
import ucm.store.common.LibcFiles;
import ucm.store.common.NativePath;

/**
 * Real system calls, of which a test can make any fail, fall short, or wait. Only syncs are not made:
 * they take long, and no test here cuts the power.
 */
final class FaultyFiles implements FileSeam {

  enum Call {
    OPEN_READ,
    OPEN_WRITE,
    CREATE,
    SET_DIRECT,
    SIZE,
    SIZE_OF_OPEN,
    STAT,
    TOUCH,
    VERSION,
    READ,
    WRITE,
    ALLOCATE,
    SYNC_DATA,
    SYNC_FOLDER,
    CLOSE,
    RENAME,
    REMOVE,
    MAKE_FOLDER,
    TRY_LOCK,
    LIST
  }

  private record Fault(Call call, int nth, int errno) {}

  private final LibcFiles real = new LibcFiles();
  private static final int EVERY = -1;

  private final Map<Call, AtomicInteger> counts = new EnumMap<>(Call.class);
  private volatile @Nullable Fault fault;
  private volatile boolean shortIo;
  private volatile boolean inPages;
  private volatile Consumer<Call> before = call -> {};

  FaultyFiles() {
    for (Call call : Call.values()) {
      counts.put(call, new AtomicInteger());
    }
  }

  /** Makes one call fail: the nth of its kind from the start, counted from 0. */
  void fail(Call call, int nth, int errno) {
    fault = new Fault(call, nth, errno);
  }

  /** Makes every call of a kind fail from now on. */
  void failAll(Call call, int errno) {
    fault = new Fault(call, EVERY, errno);
  }

  /** Makes every read and write of more than one byte move a part only. */
  void fallShort() {
    shortIo = true;
  }

  /** The same for direct I/O, which a file system cuts off only between pages. */
  void fallShortInPages() {
    shortIo = true;
    inPages = true;
  }

  /** Is told of each call before it is made. */
  void before(Consumer<Call> action) {
    before = action;
  }

  int count(Call call) {
    return counts.get(call).get();
  }

  private void enter(Call call, Object path) {
    before.accept(call);
    int n = counts.get(call).getAndIncrement();
    Fault planned = fault;
    if (planned != null && planned.call == call && (planned.nth == n || planned.nth == EVERY)) {
      throw new FileException(call.name(), path, planned.errno);
    }
  }

  @Override
  public int openRead(NativePath path) {
    enter(Call.OPEN_READ, path);
    return real.openRead(path);
  }

  @Override
  public int openUnnoticed(NativePath path) {
    enter(Call.OPEN_READ, path);
    return real.openUnnoticed(path);
  }

  @Override
  public int openWrite(NativePath path) {
    enter(Call.OPEN_WRITE, path);
    return real.openWrite(path);
  }

  @Override
  public int create(NativePath path) {
    enter(Call.CREATE, path);
    return real.create(path);
  }

  @Override
  public void setDirect(int fd, NativePath path) {
    enter(Call.SET_DIRECT, path);
    real.setDirect(fd, path);
  }

  @Override
  public long size(NativePath path) {
    enter(Call.SIZE, path);
    return real.size(path);
  }

  @Override
  public boolean stat(NativePath path, FileStat into) {
    enter(Call.STAT, path);
    return real.stat(path, into);
  }

  @Override
  public boolean touch(NativePath path, long lastUseNanos) {
    enter(Call.TOUCH, path);
    return real.touch(path, lastUseNanos);
  }

  @Override
  public long size(int fd, NativePath path) {
    enter(Call.SIZE_OF_OPEN, path);
    return real.size(fd, path);
  }

  @Override
  public long version(int fd, NativePath path) {
    enter(Call.VERSION, path);
    return real.version(fd, path);
  }

  @Override
  public long readAt(int fd, NativePath path, IoVector into, long offset) {
    enter(Call.READ, path);
    return real.readAt(fd, path, shortened(into), offset);
  }

  @Override
  public long writeAt(int fd, NativePath path, IoVector from, long offset) {
    enter(Call.WRITE, path);
    return real.writeAt(fd, path, shortened(from), offset);
  }

  private IoVector shortened(IoVector vector) {
    if (inPages) {
      long pages = vector.byteSize() / 4096;
      return pages > 1 ? vector.head((pages / 3 + 1) * 4096) : vector;
    }
    return shortIo && vector.byteSize() > 1 ? vector.head(vector.byteSize() / 3 + 1) : vector;
  }

  @Override
  public void allocate(int fd, NativePath path, long size) {
    enter(Call.ALLOCATE, path);
    real.allocate(fd, path, size);
  }

  @Override
  public void syncData(int fd, NativePath path) {
    enter(Call.SYNC_DATA, path);
  }

  @Override
  public void syncFolder(NativePath folder) {
    enter(Call.SYNC_FOLDER, folder);
  }

  /** Closes even when it is to fail, as Linux does. */
  @Override
  public void close(int fd, NativePath path) {
    real.close(fd, path);
    enter(Call.CLOSE, path);
  }

  @Override
  public void rename(NativePath from, NativePath to) {
    enter(Call.RENAME, from);
    real.rename(from, to);
  }

  @Override
  public boolean remove(NativePath path) {
    enter(Call.REMOVE, path);
    return real.remove(path);
  }

  @Override
  public boolean makeFolder(NativePath folder) {
    enter(Call.MAKE_FOLDER, folder);
    return real.makeFolder(folder);
  }

  @Override
  public boolean tryLock(int fd, NativePath path) {
    enter(Call.TRY_LOCK, path);
    return real.tryLock(fd, path);
  }

  @Override
  public List<String> list(NativePath folder) {
    enter(Call.LIST, folder);
    return real.list(folder);
  }
}

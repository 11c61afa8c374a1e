package ucm.store.nfs;

import ucm.api.Task;
import ucm.api.Transfer;

/** Moves shards between host memory and files, as {@link ucm.api.Store} says. */
interface FileMover {

  /** Starts to read. */
  Task load(Transfer transfer);

  /** Starts to write. */
  Task dump(Transfer transfer);

  /** Has the next flush report a block that will not be written. */
  void dumpFailed(long idHigh, long idLow, Throwable why);
}

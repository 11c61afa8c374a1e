package ucm.store.nfs;

import java.time.Duration;
import ucm.api.Task;
import ucm.api.TransferResult;

/** A task of the files under the number that this store gave it. */
record NumberedTask(long id, Task task) implements Task {

  @Override
  public boolean check() {
    return task.check();
  }

  @Override
  public TransferResult await(Duration timeout) throws InterruptedException {
    return task.await(timeout);
  }

  @Override
  public TransferResult result() {
    return task.result();
  }

  @Override
  public void whenTerminal(Runnable action) {
    task.whenTerminal(action);
  }
}

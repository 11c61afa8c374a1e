package ucm.store.ds3fs;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import ucm.api.Store;
import ucm.platform.libc.Errno;
import ucm.testkit.fault.TierFaultContract;

/** {@code Posix|Ds3fs}, on simulated 3FS whose requests fail, or are not carried out. */
final class TierFaultTest extends TierFaultContract {

  private SimulatedHf3fs hf3fs;

  @Override
  protected Store newUpper() {
    return new UpperTier();
  }

  @Override
  protected Store newLower() {
    return new Ds3fsStore();
  }

  @Override
  protected Map<String, Object> lowerSettings(Path folder) {
    hf3fs = SimulatedHf3fs.load(folder.getParent());
    return SmallHf3fs.settings(folder);
  }

  @Override
  protected void begin(Outage outage) {
    if (outage == Outage.HANGING) {
      hf3fs.hold(true);
      return;
    }
    for (String call : new String[] {"read", "write"}) {
      hf3fs.fail(call, 1, Integer.MAX_VALUE, Errno.EIO);
    }
  }

  @Override
  protected void end() {
    hf3fs.hold(false);
    hf3fs.heal();
  }

  @AfterEach
  void misusesNothing() {
    hf3fs.requireNoMisuse();
  }
}

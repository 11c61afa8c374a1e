package ucm.store.nfs;

import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Two nodes on a GlusterFS volume: its server is killed, and started again. */
@Timeout(value = 4, unit = TimeUnit.MINUTES)
final class TwoNodesTest {

  @TempDir private Path home;
  @TempDir private Path local;

  @Test
  void serveEachOtherThroughTheDeathOfTheServer() throws Exception {
    try (GlusterVolume volume = GlusterVolume.serve(home)) {
      TwoNodes.serveEachOther(volume.mount(), volume.mount(), new Death(volume));
    }
  }

  @Test
  void serveEachOtherEachWithALocalTierOfItsOwn() throws Exception {
    try (GlusterVolume volume = GlusterVolume.serve(home)) {
      TwoNodes.serveEachOtherWithLocalTiers(
          volume.mount(), volume.mount(), local, new Death(volume));
    }
  }

  private record Death(GlusterVolume volume) implements TwoNodes.Outage {

    @Override
    public void begins() {
      volume.kill();
    }

    @Override
    public void ends() throws Exception {
      volume.start();
    }
  }
}

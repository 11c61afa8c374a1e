package ucm.store.cache;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import ucm.api.BlockLayout;
import ucm.store.cache.fixture.Segments;
import ucm.store.cache.fixture.SharedNeighbour;
import ucm.testkit.TestProcess;

/**
 * The contract of a store, for Cache with a buffer that another process has made and is attached to all
 * the time.
 */
final class SharedWithNeighbourContractTest extends CacheOverMemoryContractTest {

  private static @Nullable TestProcess neighbour;

  private final Set<String> attached = new HashSet<>();

  @BeforeAll
  static void startsTheNeighbour() throws IOException {
    neighbour = new TestProcess(SharedNeighbour.class);
  }

  @AfterAll
  static void endsTheNeighbourAndLeavesNoSegment() {
    if (neighbour != null) {
      neighbour.close();
    }
    Segments.requireNone();
  }

  @AfterEach
  void sendsTheNeighbourAway() {
    tell("leave");
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    String name = directory.getFileName() + "-" + Integer.toHexString(layout.hashCode());
    double gib = gibForSuite(layout);
    if (attached.add(name)) {
      tell(SharedNeighbour.line(Segments.id(name), gib, layout));
    }
    return Segments.settings(name, gib);
  }

  private static void tell(String line) {
    if (neighbour == null) {
      throw new AssertionError("it was never started");
    }
    try {
      neighbour.tell(line);
      String answer = neighbour.line();
      while (answer != null && !answer.equals("ok")) {
        answer = neighbour.line();
      }
      assertThat(answer).isEqualTo("ok");
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}

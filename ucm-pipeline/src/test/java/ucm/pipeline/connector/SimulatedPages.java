package ucm.pipeline.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.pipeline.connector.TestEngines.BLOCK_TOKENS;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Random;
import java.util.stream.IntStream;

/** The pages of a simulated engine's memory: the requests that use them, and the prefix cache in them. */
final class SimulatedPages {

  static final int COUNT = 40;

  private final Random random;
  private final List<RankMemory> memories;
  private final int[] references = new int[COUNT];
  // The prefix cache: the tokens up to a block's end, and the page that holds it.
  private final Map<List<Integer>, Integer> cached = new LinkedHashMap<>();
  private final Map<Integer, List<Integer>> cachedAs = new HashMap<>();

  /**
   * All pages are free and hold nothing.
   *
   * @param memories whose bytes of a page are poisoned when the page is given up
   */
  SimulatedPages(Random random, List<RankMemory> memories) {
    this.random = random;
    this.memories = memories;
  }

  /** The pages that hold the blocks a prompt begins with, some blocks at the most. */
  List<Integer> hits(int[] tokens, int most) {
    List<Integer> hits = new ArrayList<>();
    while (hits.size() < most && cached.containsKey(key(tokens, hits.size()))) {
      hits.add(cached.get(key(tokens, hits.size())));
    }
    return hits;
  }

  /** One more request uses a page. */
  void use(int page) {
    references[page]++;
  }

  /** One request less uses a page. */
  void release(int page) {
    references[page]--;
  }

  /** Takes any unused page, and evicts what it held; none when all are in use. */
  OptionalInt take() {
    int[] free = IntStream.range(0, COUNT).filter(page -> references[page] == 0).toArray();
    if (free.length == 0) {
      return OptionalInt.empty();
    }
    int page = free[random.nextInt(free.length)];
    forget(page);
    use(page);
    return OptionalInt.of(page);
  }

  /** Evicts some unused pages. */
  void dropSome() {
    for (List<Integer> key : List.copyOf(cached.keySet())) {
      int page = cached.get(key);
      if (references[page] == 0 && random.nextInt(8) == 0) {
        forget(page);
      }
    }
  }

  /** A page holds nothing any more that could be used. */
  void forget(int page) {
    List<Integer> key = cachedAs.remove(page);
    if (key != null) {
      cached.remove(key);
    }
    memories.forEach(memory -> memory.poison(page));
  }

  /** The first blocks of a prompt are in the pages of its table. */
  void remember(int[] tokens, List<Integer> table, int blocks) {
    for (int block = 0; block < blocks; block++) {
      List<Integer> key = key(tokens, block);
      int page = table.get(block);
      if (!cached.containsKey(key) && !cachedAs.containsKey(page)) {
        cached.put(key, page);
        cachedAs.put(page, key);
      }
    }
  }

  void requireAllFree() {
    assertThat(references).as("pages in use").containsOnly(0);
  }

  private static List<Integer> key(int[] tokens, int block) {
    return Arrays.stream(tokens, 0, (block + 1) * BLOCK_TOKENS).boxed().toList();
  }
}

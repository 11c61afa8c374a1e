package ucm.pipeline.connector;

import java.util.ArrayList;
import java.util.List;

/** A request of a {@link SimulatedEngine}, with its table of pages. */
final class SimulatedRequest {

  final String id;
  int[] tokens;
  final int promptTokens;
  final List<Integer> table = new ArrayList<>();
  int told;
  boolean resumed;
  int computed;
  int hbm;
  int asked;
  boolean loads;

  SimulatedRequest(String id, int[] tokens) {
    this.id = id;
    this.tokens = tokens;
    this.promptTokens = tokens.length;
  }

  int[] table(int from, int to) {
    return table.subList(from, to).stream().mapToInt(Integer::intValue).toArray();
  }
}

package ucm.bench.jmh;

import java.util.ArrayList;
import java.util.List;
import ucm.lite.edit.GeneratorOptions;
import ucm.lite.edit.TraceGenerator;
import ucm.lite.trace.TraceReader;
import ucm.lite.trace.TraceRequest;

/** The trace that benchmarks read: a generated one, or that of {@code -Dtrace=FILE}. */
final class TraceInput {

  private TraceInput() {}

  static List<TraceRequest> read() {
    List<TraceRequest> requests = new ArrayList<>();
    String given = System.getProperty("trace", "");
    if (given.isEmpty()) {
      new TraceGenerator(new GeneratorOptions(20_000, 1, 3, 512, 0.8, 0.05, 0.15, 8))
          .generate(requests::add);
    } else {
      new TraceReader().read(List.of(given), requests::add);
    }
    long blocks = requests.stream().mapToLong(TraceRequest::blockCount).sum();
    System.out.println("requests: " + requests.size() + ", references to blocks: " + blocks);
    return requests;
  }
}

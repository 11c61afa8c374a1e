package ucm.bench.serve;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import ucm.api.BlockIds;
import ucm.bench.simulator.ComputeModel;
import ucm.bench.simulator.EngineSimulator;
import ucm.bench.simulator.Prompts;
import ucm.bench.simulator.ServeEngine;
import ucm.bench.simulator.ServeRequest;
import ucm.bench.simulator.ServeResult;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.lite.trace.TraceReadReport;
import ucm.lite.trace.TraceReader;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;

/** The first requests of a trace, as the simulated engine gets them. */
public record ServeTrace(List<TraceRequest> requests, double speed, int mostOutputTokens) {

  /** Enough have been read. */
  private static final class EnoughException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    EnoughException() {
      super(null, null, false, false);
    }
  }

  private static final int WARM_UP_REQUESTS = 8;

  /** Reads the first requests of a trace, which come {@code speed} times faster than it says. */
  public static ServeTrace read(
      List<String> inputs, int limit, double speed, int mostOutputTokens, PrintWriter err) {
    List<TraceRequest> requests = new ArrayList<>();
    TraceVisitor collect =
        request -> {
          if (requests.size() == limit) {
            throw new EnoughException();
          }
          if (request.inputTokens() > 0) {
            requests.add(request);
          }
        };
    try {
      TraceReadReport report = new TraceReader().read(inputs, collect);
      report.problems().forEach(problem -> err.println("ucm: " + problem));
    } catch (EnoughException e) {
      // What follows is not looked at.
    }
    UsageException.when(
        requests.isEmpty(), "no request of " + String.join(", ", inputs) + " has a prompt");
    return new ServeTrace(requests, speed, mostOutputTokens);
  }

  /** Most tokens that a request will have in the KV cache. */
  public int longest() {
    return requests.stream()
        .mapToInt(request -> request.inputTokens() + outputTokens(request))
        .max()
        .orElse(0);
  }

  /** Tokens of the blocks that differ, and of what no block covers: about what a store will hold. */
  public long distinctTokens() {
    Set<BlockIds> seen = new HashSet<>();
    long tokens = 0;
    for (TraceRequest request : requests) {
      int covered = 0;
      for (int block = 0; block < request.blockCount(); block++) {
        int to = request.prefixTokens(block + 1);
        if (seen.add(BlockIds.of(request.blockIdHigh(block), request.blockIdLow(block)))) {
          tokens += to - covered;
        }
        covered = to;
      }
      tokens += request.inputTokens() - covered;
    }
    return tokens;
  }

  private int outputTokens(TraceRequest request) {
    return Math.clamp(request.outputTokens(), 1, mostOutputTokens);
  }

  private List<ServeRequest> requests(double atSpeed) {
    List<ServeRequest> made = new ArrayList<>();
    double first = requests.stream().mapToDouble(TraceRequest::timestampMillis).min().orElse(0);
    for (TraceRequest request : requests) {
      int[] prompt = Prompts.of(request, made.size());
      long arrival = Math.round((request.timestampMillis() - first) / atSpeed * 1e6);
      made.add(new ServeRequest("trace-" + made.size(), prompt, outputTokens(request), arrival));
    }
    return made;
  }

  public ServeResult computeEverything(ServeSite site, ComputeModel compute)
      throws InterruptedException {
    return EngineSimulator.computeEverything(site.plan(), site.hasher(), compute, requests(speed));
  }

  /** Serves the requests with UCM, whose store is empty at the beginning. */
  public ServeResult serve(ServeSite site, ComputeModel compute) throws InterruptedException {
    // For nothing, so that those that count meet warm code.
    try (ServeEngine engine = site.open("warm-up")) {
      int few = Math.min(WARM_UP_REQUESTS, requests.size());
      List<ServeRequest> first = requests(Double.POSITIVE_INFINITY).subList(0, few);
      ServeResult _ = engine.run(site.plan(), ComputeModel.FREE, first, _ -> {});
    } finally {
      site.remove("warm-up");
    }
    try (Progress progress = new Progress("bench serve", requests.size());
        ServeEngine engine = site.open("trace")) {
      return engine.run(site.plan(), compute, requests(speed), progress::at);
    }
  }
}

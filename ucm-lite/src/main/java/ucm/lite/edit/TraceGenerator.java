package ucm.lite.edit;

import java.util.Arrays;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import ucm.api.BlockIds;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;

/**
 * Makes up a trace: sessions begin at random times (a Poisson process), each sends prompts that grow
 * from turn to turn, and all begin with one of a few system prompts. Lengths and gaps are
 * log-normal. It is for trying things out; it is no model of real traffic.
 *
 * <p>Memory: the sessions under way.
 */
public final class TraceGenerator {
  private static final int DOCUMENTS = 300;

  private final GeneratorOptions options;
  private final SplittableRandom random;
  private final long[][] systemPrompts;
  private final long[][] documents = new long[DOCUMENTS][];
  private final PriorityQueue<Session> active =
      new PriorityQueue<>(Comparator.comparingDouble(session -> session.nextMillis));
  private long nextId;

  public TraceGenerator(GeneratorOptions options) {
    this.options = options;
    this.random = new SplittableRandom(options.seed());
    Arrays.fill(documents, new long[0]);
    this.systemPrompts = new long[options.systemPrompts()][];
    for (int i = 0; i < systemPrompts.length; i++) {
      systemPrompts[i] = freshBlocks(logNormal(1500, 0.7));
    }
  }

  /** The kinds of sessions: how many turns, how far apart, and how much comes with each. */
  private record Kind(
      double meanTurns, double gapSeconds, double inputTokens, double outputTokens) {

    static final Kind CHAT = new Kind(5, 60, 250, 350);
    static final Kind AGENT = new Kind(20, 6, 1200, 150);
    static final Kind DOCUMENT = new Kind(3, 45, 60, 300);
  }

  /** A conversation under way: its full blocks so far and the tokens beyond them. */
  private static final class Session {
    private final Kind kind;
    private double nextMillis;
    private int turnsLeft;
    private long[] blocks;
    private int tokens;

    Session(Kind kind, double startMillis, int turns, long[] blocks, int tokens) {
      this.kind = kind;
      this.nextMillis = startMillis;
      this.turnsLeft = turns;
      this.blocks = blocks;
      this.tokens = tokens;
    }
  }

  public void generate(TraceVisitor visitor) {
    double arrival = nextArrival(0);
    for (int made = 0; made < options.requests(); made++) {
      while (active.isEmpty() || active.element().nextMillis > arrival) {
        active.add(session(arrival));
        arrival = nextArrival(arrival);
      }
      turn(active.remove(), made, visitor);
    }
  }

  private double nextArrival(double afterMillis) {
    double all = options.chatShare() + options.agentShare() + options.documentShare();
    double meanTurns =
        (options.chatShare() * Kind.CHAT.meanTurns
                + options.agentShare() * Kind.AGENT.meanTurns
                + options.documentShare() * Kind.DOCUMENT.meanTurns)
            / all;
    double gap = -Math.log(1 - random.nextDouble()) * meanTurns / options.requestsPerSecond();
    return afterMillis + 1000 * gap;
  }

  private Session session(double startMillis) {
    double all = options.chatShare() + options.agentShare() + options.documentShare();
    double drawn = random.nextDouble() * all;
    Kind kind =
        drawn < options.chatShare()
            ? Kind.CHAT
            : drawn < options.chatShare() + options.agentShare() ? Kind.AGENT : Kind.DOCUMENT;
    // Geometric: the chance of another turn is always the same.
    int turns = 1 + (int) (Math.log(1 - random.nextDouble()) / Math.log(1 - 1 / kind.meanTurns));
    long[] shared =
        kind.equals(Kind.DOCUMENT)
            ? document()
            : systemPrompts[random.nextInt(systemPrompts.length)];
    return new Session(kind, startMillis, turns, shared, shared.length * options.blockTokens());
  }

  /** A document after its system prompt; few are asked about often (Zipf). */
  private long[] document() {
    int rank = (int) Math.pow(DOCUMENTS, random.nextDouble()) - 1;
    if (documents[rank].length == 0) {
      long[] prompt = systemPrompts[rank % systemPrompts.length];
      documents[rank] = joined(prompt, freshBlocks(logNormal(12_000, 0.8)));
    }
    return documents[rank];
  }

  private void turn(Session session, int number, TraceVisitor visitor) {
    Kind kind = session.kind;
    grow(session, logNormal(kind.inputTokens, 0.8));
    int output = logNormal(kind.outputTokens, 0.7);
    int full = session.blocks.length;
    boolean partial = session.tokens % options.blockTokens() != 0;
    long[] ids = new long[2 * (full + (partial ? 1 : 0))];
    for (int i = 0; i < full; i++) {
      ids[2 * i + 1] = session.blocks[i];
    }
    if (partial) {
      ids[2 * full + 1] = nextId++;
    }
    visitor.request(
        new TraceRequest(
            Math.floor(session.nextMillis),
            Integer.toString(number),
            session.tokens,
            output,
            options.blockTokens(),
            BlockIds.wrap(ids)));
    if (--session.turnsLeft > 0) {
      grow(session, output);
      session.nextMillis += 1000.0 * logNormal(kind.gapSeconds, 1);
      active.add(session);
    }
  }

  private void grow(Session session, int byTokens) {
    session.tokens += byTokens;
    int missing = session.tokens / options.blockTokens() - session.blocks.length;
    session.blocks = joined(session.blocks, freshBlocks(missing * options.blockTokens()));
  }

  private long[] freshBlocks(int tokens) {
    long first = nextId;
    nextId += tokens / options.blockTokens();
    return LongStream.range(first, nextId).toArray();
  }

  private static long[] joined(long[] first, long[] second) {
    return LongStream.concat(Arrays.stream(first), Arrays.stream(second)).toArray();
  }

  /** Draws a number of 1 or more, with some median. */
  private int logNormal(double median, double sigma) {
    return (int) Math.max(1, Math.min(1e6, median * Math.exp(sigma * random.nextGaussian())));
  }
}

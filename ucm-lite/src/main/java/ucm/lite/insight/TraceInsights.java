package ucm.lite.insight;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import ucm.api.BlockIds;
import ucm.lite.curve.QuantileHistogram;
import ucm.lite.curve.Quantiles;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.SessionTracker;

/**
 * How the prompts of a whole trace relate to each other in time. Times are in seconds.
 *
 * @param sessions conversations, found from the blocks alone: a prompt goes on where an earlier one of it ended
 * @param largestSession requests of the longest session
 * @param reusedSessions sessions of two requests or more
 * @param sessionGaps between consecutive requests of a session
 * @param blockGaps between consecutive references to a block by different requests
 * @param lifetimes how long after a request some block that it brought was last used by another one;
 *     of requests that were used again
 * @param requestsNeverReused requests that brought blocks which no other request used
 * @param blockLifetimes from the first to the last use of blocks that were used again
 * @param blocksNeverReused blocks that only one request used
 * @param timeBins the three distributions of times in the same bins, up to the longest time; empty
 *     when there is none
 * @param hotPrefixes the prefixes that save most tokens, most first
 */
public record TraceInsights(
    long sessions,
    long largestSession,
    long reusedSessions,
    Quantiles sessionGaps,
    Quantiles blockGaps,
    Quantiles lifetimes,
    long requestsNeverReused,
    Quantiles blockLifetimes,
    long blocksNeverReused,
    List<TimeBin> timeBins,
    List<HotPrefix> hotPrefixes) {

  public TraceInsights {
    timeBins = List.copyOf(timeBins);
    hotPrefixes = List.copyOf(hotPrefixes);
  }

  /** Looks at a whole trace. Memory: about 40 bytes a distinct block and 20 a request. */
  public static TraceInsights of(RecordedTrace trace) throws InterruptedException {
    Collector collector = new Collector(trace);
    trace.feed(collector);
    return collector.result();
  }

  /** Traces of several sources may not be sorted; a time that runs back counts as none. */
  static double seconds(double fromMillis, double toMillis) {
    return Math.max(0, toMillis - fromMillis) / 1e3;
  }

  /**
   * How many gaps fall between two times, for bar charts. The bins of a list follow one another: each
   * begins where the one before ends, the first at 0.
   *
   * @param upToSeconds where the bin ends (inclusive, to within 1%)
   * @param sessionGaps gaps between consecutive requests of a session
   * @param blockGaps gaps between consecutive references to a block by different requests
   * @param lifetimes requests whose blocks were last used again this long after them
   */
  public record TimeBin(double upToSeconds, long sessionGaps, long blockGaps, long lifetimes) {}

  /**
   * A prefix that many prompts begin with, as long as it stays (nearly) as frequent.
   *
   * @param lastBlockId the id of its last block: 32 hex digits
   * @param blocks its length
   * @param requests prompts that begin with it
   */
  public record HotPrefix(String lastBlockId, int blocks, long requests) {}

  /** Collects them in one walk over the trace. */
  private static final class Collector implements Consumer<NumberedRequest> {
    private static final int NONE = -1;
    private static final double MILLISECOND = 1e-3;
    private static final int MOST_PREFIXES = 10;

    /** A continuation this frequent belongs to the same hot prefix. */
    private static final double AS_FREQUENT = 0.9;

    /** Ends of the time bins, in seconds; the last bin takes what is longer, too. */
    private static final double[] BIN_EDGES = {
      1, 3, 10, 30, 60, 180, 600, 1800, 3600, 10_800, 36_000, 86_400, 259_200, 864_000, 2_592_000
    };

    private final RecordedTrace trace;
    private final SessionTracker tracker;
    private final int[] lastUse;
    private final int[] broughtBy;
    private final int[] uses;
    private final int[] before;
    private final int[] depth;

    /** By request: the last request that used a block it brought. */
    private final int[] lastReuse;

    private final boolean[] brought;
    private final int[] sessionSize;
    private final double[] sessionTime;
    private final QuantileHistogram sessionGaps = new QuantileHistogram(MILLISECOND);
    private final QuantileHistogram blockGaps = new QuantileHistogram(MILLISECOND);

    Collector(RecordedTrace trace) {
      this.trace = trace;
      int blocks = trace.uniqueBlocks();
      int requests = trace.requests();
      tracker = new SessionTracker(blocks);
      lastUse = RecordedTrace.table(blocks);
      broughtBy = RecordedTrace.table(blocks);
      uses = new int[blocks];
      before = RecordedTrace.table(blocks);
      depth = new int[blocks];
      lastReuse = RecordedTrace.table(requests);
      brought = new boolean[requests];
      sessionSize = new int[requests];
      sessionTime = new double[requests];
    }

    @Override
    public void accept(NumberedRequest request) {
      double now = request.timestampMillis;
      int session = tracker.sessionOf(request);
      if (sessionSize[session]++ > 0) {
        sessionGaps.add(seconds(sessionTime[session], now));
      }
      sessionTime[session] = now;
      int previous = NONE;
      for (int i = 0; i < request.count; i++) {
        int block = request.blocks[i];
        if (lastUse[block] == NONE) {
          broughtBy[block] = request.number;
          brought[request.number] = true;
          before[block] = previous;
          depth[block] = i + 1;
        } else if (lastUse[block] != request.number) {
          blockGaps.add(seconds(trace.timestampMillis(lastUse[block]), now));
          lastReuse[broughtBy[block]] = request.number;
        }
        uses[block] += lastUse[block] == request.number ? 0 : 1;
        lastUse[block] = request.number;
        previous = block;
      }
    }

    TraceInsights result() {
      QuantileHistogram lifetimes = new QuantileHistogram(MILLISECOND);
      long never = 0;
      for (int r = 0; r < trace.requests(); r++) {
        if (lastReuse[r] != NONE) {
          lifetimes.add(seconds(trace.timestampMillis(r), trace.timestampMillis(lastReuse[r])));
        } else if (brought[r]) {
          never++;
        }
      }
      QuantileHistogram blockLifetimes = new QuantileHistogram(MILLISECOND);
      for (int block = 0; block < uses.length; block++) {
        if (uses[block] > 1) {
          blockLifetimes.add(
              seconds(
                  trace.timestampMillis(broughtBy[block]), trace.timestampMillis(lastUse[block])));
        }
      }
      return new TraceInsights(
          tracker.sessions(),
          Arrays.stream(sessionSize).max().orElse(0),
          Arrays.stream(sessionSize).filter(size -> size > 1).count(),
          sessionGaps.quantiles(),
          blockGaps.quantiles(),
          lifetimes.quantiles(),
          never,
          blockLifetimes.quantiles(),
          uses.length - blockLifetimes.count(),
          timeBins(lifetimes),
          hotPrefixes());
    }

    private List<TimeBin> timeBins(QuantileHistogram lifetimes) {
      List<TimeBin> bins = new ArrayList<>();
      long all = sessionGaps.count() + blockGaps.count() + lifetimes.count();
      TimeBin before = new TimeBin(0, 0, 0, 0);
      for (int edge = 0;
          before.sessionGaps() + before.blockGaps() + before.lifetimes() < all;
          edge++) {
        double end = edge == BIN_EDGES.length - 1 ? Double.MAX_VALUE : BIN_EDGES[edge];
        TimeBin upTo =
            new TimeBin(
                BIN_EDGES[edge],
                sessionGaps.countUpTo(end),
                blockGaps.countUpTo(end),
                lifetimes.countUpTo(end));
        bins.add(
            new TimeBin(
                BIN_EDGES[edge],
                upTo.sessionGaps() - before.sessionGaps(),
                upTo.blockGaps() - before.blockGaps(),
                upTo.lifetimes() - before.lifetimes()));
        before = upTo;
      }
      return bins;
    }

    private List<HotPrefix> hotPrefixes() {
      int blocks = uses.length;
      boolean[] goesOn = new boolean[blocks];
      for (int block = 0; block < blocks; block++) {
        int parent = before[block];
        if (parent != NONE && uses[block] >= AS_FREQUENT * uses[parent]) {
          goesOn[parent] = true;
        }
      }
      return IntStream.range(0, blocks)
          .filter(block -> uses[block] > 1 && !goesOn[block])
          .boxed()
          .sorted(Comparator.comparingLong(this::saved).reversed())
          .limit(MOST_PREFIXES)
          .map(block -> new HotPrefix(id(block), depth[block], uses[block]))
          .toList();
    }

    private String id(int block) {
      return BlockIds.hex(trace.idHigh(block), trace.idLow(block));
    }

    /** Block references that the prefix up to a block saves. */
    private long saved(int block) {
      return (uses[block] - 1L) * depth[block];
    }
  }
}

package ucm.lite.tier;

import java.util.Arrays;
import ucm.lite.record.NumberedRequest;
import ucm.lite.record.SessionTracker;
import ucm.platform.table.BlockTable;

/** Deals requests to ranks. */
final class Router {
  private final Routing routing;
  private final SessionTracker sessions;
  private final int[] lastRank;
  private final long[] served;

  Router(Routing routing, int ranks, int uniqueBlocks) {
    this.routing = routing;
    this.sessions = new SessionTracker(routing == Routing.SESSION ? uniqueBlocks : 0);
    this.lastRank = new int[routing == Routing.PREFIX ? uniqueBlocks : 0];
    this.served = new long[ranks];
  }

  int rankOf(NumberedRequest request) {
    int rank =
        switch (routing) {
          case ROUND_ROBIN -> Math.floorMod(request.place, served.length);
          case SESSION ->
              (int) (BlockTable.hash(0, sessions.sessionOf(request)) >>> 33) % served.length;
          case PREFIX -> byPrefix(request);
        };
    served[rank] += request.count;
    return rank;
  }

  private int byPrefix(NumberedRequest request) {
    int rank = 0;
    if (2L * request.known > request.count) {
      rank = lastRank[request.blocks[request.known - 1]];
    } else {
      for (int r = 1; r < served.length; r++) {
        rank = served[r] < served[rank] ? r : rank;
      }
    }
    for (int i = 0; i < request.count; i++) {
      lastRank[request.blocks[i]] = rank;
    }
    return rank;
  }

  /** Blocks of the rank that served the most, as a multiple of the mean. */
  double imbalance() {
    long all = Arrays.stream(served).sum();
    long most = Arrays.stream(served).max().orElse(0);
    return all == 0 ? 1 : (double) most * served.length / all;
  }
}

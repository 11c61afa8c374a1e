package ucm.store.file.transfer;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Transfer;

/**
 * A transfer cut into groups: runs of shards of the same block that are moved at once. Where all
 * groups are of one size, as they are when each is a whole block or one shard, nothing is kept of
 * them but that size. Immutable.
 */
final class ShardGroups {

  // More than this is moved by several workers.
  private static final long MAX_GROUP_BYTES = 4L << 20;

  private final int shards;
  private final int count;
  private final int size;
  // Where each group starts, when they are not of one size; the number of shards after the last.
  private final int @Nullable [] starts;

  private ShardGroups(int shards, int count, int size, int @Nullable [] starts) {
    this.shards = shards;
    this.count = count;
    this.size = size;
    this.starts = starts;
  }

  /** Cuts a transfer. */
  static ShardGroups of(Transfer transfer) {
    int shards = transfer.shardCount();
    int longest =
        Math.clamp(
            MAX_GROUP_BYTES / transfer.layout().shardSize(), 1, transfer.layout().shardCount());
    int first = shards == 0 ? 1 : endOf(transfer, 0, longest);
    int count = 0;
    boolean isEven = true;
    int end;
    for (int start = 0; start < shards; start = end) {
      end = endOf(transfer, start, longest);
      // The last one may be shorter.
      isEven &= start == (long) count * first && end - start <= first;
      count++;
    }
    return new ShardGroups(
        shards, count, first, isEven ? null : starts(transfer, longest, new int[count + 1]));
  }

  private static int[] starts(Transfer transfer, int longest, int[] starts) {
    for (int group = 1; group < starts.length; group++) {
      starts[group] = endOf(transfer, starts[group - 1], longest);
    }
    return starts;
  }

  private static int endOf(Transfer transfer, int start, int longest) {
    BlockIds ids = transfer.ids();
    int most = (int) Math.min(ids.size(), (long) start + longest);
    int end = start + 1;
    while (end < most && ids.high(end) == ids.high(start) && ids.low(end) == ids.low(start)) {
      end++;
    }
    return end;
  }

  /** How many groups. */
  int count() {
    return count;
  }

  /** The first shard of a group. */
  int start(int group) {
    return starts == null ? group * size : starts[group];
  }

  /** The last shard of a group, exclusive. */
  int end(int group) {
    return starts == null ? Math.min(shards, start(group) + size) : starts[group + 1];
  }
}

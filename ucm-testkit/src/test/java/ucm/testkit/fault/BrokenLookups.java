package ucm.testkit.fault;

import java.util.BitSet;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import ucm.api.BlockIds;
import ucm.api.Task;
import ucm.api.Transfer;

/** Stores that say wrong things about what is there. */
final class BrokenLookups {

  private BrokenLookups() {}

  static final class PrefixLogic extends BrokenStore {
    @Override
    public BitSet lookup(BlockIds ids) {
      BitSet found = new BitSet();
      found.set(0, inner.lookupPrefix(ids) + 1);
      return found;
    }
  }

  static final class ExclusivePrefix extends BrokenStore {
    @Override
    public int lookupPrefix(BlockIds ids) {
      return inner.lookupPrefix(ids) + 1;
    }
  }

  static final class PrefixWithHoles extends BrokenStore {
    @Override
    public int lookupPrefix(BlockIds ids) {
      return inner.lookup(ids).length() - 1;
    }
  }

  static final class RemovesOneBlockOnly extends BrokenStore {
    @Override
    public BitSet remove(BlockIds ids) {
      if (!ids.isEmpty()) {
        inner.remove(ids.slice(0, 1));
      }
      return inner.remove(BlockIds.empty());
    }
  }

  static final class SaysItCannotRemove extends BrokenStore {
    @Override
    public boolean canRemove() {
      return false;
    }
  }

  static final class ComparesHalfAnId extends BrokenStore {
    @Override
    public BitSet lookup(BlockIds ids) {
      BitSet found = inner.lookup(ids);
      Set<Long> highs = new HashSet<>();
      for (Transfer dump : dumps) {
        for (int shard = 0; shard < dump.shardCount(); shard++) {
          highs.add(dump.ids().high(shard));
        }
      }
      for (int i = 0; i < ids.size(); i++) {
        found.set(i, highs.contains(ids.high(i)));
      }
      return found;
    }
  }

  static final class TakesZerosForNothing extends BrokenStore {
    @Override
    public BitSet lookup(BlockIds ids) {
      BitSet found = inner.lookup(ids);
      for (int i = 0; i < ids.size(); i++) {
        if ((ids.high(i) | ids.low(i)) == 0) {
          found.clear(i);
        }
      }
      return found;
    }
  }

  static final class AnswersFromItsCache extends BrokenStore {
    private final Map<BlockIds, BitSet> answers = new ConcurrentHashMap<>();

    @Override
    public BitSet lookup(BlockIds ids) {
      return answers.computeIfAbsent(ids, inner::lookup);
    }
  }

  static final class ShowsIncompleteBlocks extends BrokenStore {
    @Override
    public BitSet lookup(BlockIds ids) {
      BitSet found = inner.lookup(ids);
      for (int i = 0; i < ids.size(); i++) {
        found.set(i, !shardsOf(dumps, ids, i).isEmpty());
      }
      return found;
    }
  }

  static final class CommitsWithTheLastShard extends BrokenStore {
    @Override
    public int lookupPrefix(BlockIds ids) {
      int run = inner.lookupPrefix(ids);
      Transfer any = dumps.peek();
      return run < 0
              && any != null
              && shardsOf(dumps, ids, 0).contains(any.layout().shardCount() - 1)
          ? 0
          : run;
    }
  }

  static final class CountsEveryDump extends BrokenStore {
    @Override
    public BitSet lookup(BlockIds ids) {
      BitSet found = inner.lookup(ids);
      for (int i = 0; i < ids.size() && !dumps.isEmpty(); i++) {
        int needed = dumps.element().layout().shardCount();
        found.set(i, shardsOf(dumps, ids, i).size() >= needed);
      }
      return found;
    }
  }

  static final class FindsWhatItFailedToLoad extends BrokenStore {
    @Override
    public BitSet lookup(BlockIds ids) {
      BitSet found = inner.lookup(ids);
      for (int i = 0; i < ids.size(); i++) {
        found.set(i, found.get(i) || !shardsOf(loads, ids, i).isEmpty());
      }
      return found;
    }
  }

  static final class CallsPartsDurable extends BrokenStore {
    @Override
    public BitSet durable(BlockIds ids) {
      BitSet durable = inner.durable(ids);
      for (int i = 0; i < ids.size(); i++) {
        durable.set(i, !shardsOf(dumps, ids, i).isEmpty());
      }
      return durable;
    }
  }

  static final class CallsNothingDurable extends BrokenStore {
    @Override
    public BitSet durable(BlockIds ids) {
      BitSet durable = inner.durable(ids);
      durable.clear();
      return durable;
    }
  }

  static final class ForgetsWhatWasLoaded extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      Task task = super.load(transfer);
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        volume.remove(transfer.ids(), shard);
      }
      return task;
    }
  }
}

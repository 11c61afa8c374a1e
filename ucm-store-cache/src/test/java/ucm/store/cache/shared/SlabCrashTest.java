package ucm.store.cache.shared;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import ucm.api.BlockLayout;
import ucm.store.cache.eviction.BlockTable;

/**
 * An owner that dies after each single write to the segment while it gives places to blocks, evicts,
 * drops, or repairs: the next process repairs, finds no block twice and none that is not whole, and
 * has every slab to give.
 */
final class SlabCrashTest {

  private static final int SHARDS = 3;
  private static final int SLABS = 5;
  private static final int DEAD = 3;
  private static final int NEXT = 4;
  private static final BlockLayout BLOCKS = BlockLayout.uniform(4096, 4096, SHARDS * 4096);
  private static final SegmentLayout LAYOUT = SegmentLayout.of(BLOCKS, SLABS);

  /** What a process that is killed has. */
  private static final class Killed extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }

  /** Lets so many writes through, and then none. */
  private static final class DyingWords extends SegmentWords {

    private int left;

    DyingWords(MemorySegment memory, int writes) {
      super(memory);
      left = writes;
    }

    @Override
    void set(long at, long value) {
      write();
      super.set(at, value);
    }

    @Override
    void setPlain(long at, long value) {
      write();
      super.setPlain(at, value);
    }

    @Override
    boolean swap(long at, long expected, long value) {
      write();
      return super.swap(at, expected, value);
    }

    @Override
    void clearBits(long at, long bits) {
      write();
      super.clearBits(at, bits);
    }

    @Override
    void setInt(long at, int value) {
      write();
      super.setInt(at, value);
    }

    @Override
    void setPlainInt(long at, int value) {
      write();
      super.setPlainInt(at, value);
    }

    private void write() {
      if (left-- == 0) {
        throw new Killed();
      }
    }
  }

  private final MemorySegment memory = Arena.ofAuto().allocate(LAYOUT.slotsAt(), 4096);
  private final SegmentWords words = new SegmentWords(memory);

  @Test
  void dyingAtAnyWriteLeavesNothingThatIsNotRepaired() {
    int deaths = 0;
    boolean died = true;
    for (int writes = 0; died; writes++) {
      fresh();
      died = dies(writes, DEAD);
      deaths += died ? 1 : 0;
      // The next one takes the lock over, and then clears up after the dead one.
      SlabManager next = manager(words, NEXT);
      boolean _ = next.repair(0, true);
      requireSound(writes + " writes, lock taken over");
      boolean _ = next.repair(1 << DEAD, true);
      boolean _ = next.repair(1 << DEAD, false);
      requireSound(writes + " writes, cleared");
      requireNothingOfTheDead(writes + " writes");
      requireAllSlabsCanBeTaken(writes + " writes");
    }
    assertThat(deaths).isGreaterThan(100);
  }

  @Test
  void whoDiesWhileRepairingIsRepairedToo() {
    for (int writes = 0; ; writes++) {
      fresh();
      boolean _ = dies(60, DEAD);
      boolean died = false;
      try {
        boolean _ = manager(new DyingWords(memory, writes), 5).repair(1 << DEAD, false);
      } catch (Killed e) {
        died = true;
      }
      boolean _ = manager(words, NEXT).repair(1 << DEAD | 1 << 5, false);
      requireSound(writes + " writes of the repair");
      requireNothingOfTheDead(writes + " writes of the repair");
      requireAllSlabsCanBeTaken(writes + " writes of the repair");
      if (!died) {
        assertThat(writes).isGreaterThan(20);
        return;
      }
    }
  }

  /** Blocks 1 and 2 are whole and unreferenced; block 3 has one of its shards. */
  private void fresh() {
    memory.fill((byte) 0);
    SlabManager.format(words, LAYOUT, 0);
    SlabManager manager = manager(words, 0);
    for (long id = 1; id <= 3; id++) {
      int slab = manager.take(hash(id), id, id, 0, SlotWord.LOADING, 0);
      for (int shard = 0; shard < (id == 3 ? 1 : SHARDS); shard++) {
        ready(words, slab, shard, 0);
      }
      table(words, 0).noteComplete(slab);
    }
    requireSound("fresh");
  }

  /** Does all that is done under the lock, until it dies; false when it did not. */
  private boolean dies(int writes, int owner) {
    SegmentWords dying = new DyingWords(memory, writes);
    SlabManager manager = manager(dying, owner);
    SlabTable table = table(dying, owner);
    try {
      for (long id = 10; id < 14; id++) {
        // The last two evict.
        long dumper = id % 2 == 0 ? SlabWord.dumper(owner) : 0;
        int state = id % 2 == 0 ? SlotWord.DUMPING : SlotWord.LOADING;
        int slab = manager.take(hash(id), id, id, 0, state, dumper);
        for (int shard = 0; shard < SHARDS && slab >= 0; shard++) {
          ready(dying, slab, shard, owner);
        }
        table.noteComplete(slab);
      }
      int slab = table.find(hash(13), 13, 13);
      table.orphan(slab);
      boolean _ = manager.freeOrphan(slab);
      int unnamed = manager.takeUnnamed();
      ready(dying, unnamed, 0, owner);
      boolean _ = manager.freeOrphan(unnamed);
      boolean _ = manager.repair(0, true);
      return false;
    } catch (Killed e) {
      return true;
    }
  }

  /** What a process does to a slot it fills and lets go. */
  private static void ready(SegmentWords words, int slab, int shard, int owner) {
    long at = LAYOUT.slotWordAt(slab * SHARDS + shard);
    long word = words.get(at);
    if (!SlotWord.isFilling(word)) {
      words.set(at, SlotWord.reserved(word, owner, SlotWord.LOADING));
    }
    words.set(at, SlotWord.withState(words.get(at), SlotWord.READY));
    words.clearBits(at, SlotWord.bit(owner));
  }

  private void requireSound(String when) {
    SlabTable table = table(words, NEXT);
    Set<Long> named = new HashSet<>();
    for (int slab = 0; slab < SLABS; slab++) {
      long word = table.word(slab);
      if (SlabWord.state(word) != SlabWord.NAMED) {
        continue;
      }
      long id = words.get(LAYOUT.slabAt(slab) + SegmentLayout.SLAB_HIGH);
      assertThat(named.add(id)).as("block %d is in one slab, %s", id, when).isTrue();
      assertThat(table.walk(hash(id), id, id))
          .as("block %d is found, %s", id, when)
          .isEqualTo(slab);
      int ready = 0;
      for (int shard = 0; shard < SHARDS; shard++) {
        long slot = words.get(LAYOUT.slotWordAt(slab * SHARDS + shard));
        ready += SlotWord.state(slot) == SlotWord.READY ? 1 : 0;
      }
      assertThat(SlabWord.isComplete(word))
          .as("block %d is complete, %s", id, when)
          .isEqualTo(ready == SHARDS);
    }
    for (long id = 1; id < 20; id++) {
      boolean found = table.walk(hash(id), id, id) != SlabTable.NONE;
      assertThat(found).as("block %d is found, %s", id, when).isEqualTo(named.contains(id));
    }
  }

  private void requireNothingOfTheDead(String when) {
    SlabTable table = table(words, NEXT);
    for (int slot = 0; slot < LAYOUT.slots(); slot++) {
      long word = words.get(LAYOUT.slotWordAt(slot));
      assertThat(SlotWord.isFilling(word)).as("slot %d is being filled, %s", slot, when).isFalse();
      assertThat(SlotWord.owners(word)).as("owners of slot %d, %s", slot, when).isZero();
    }
    for (long dumped = 10; dumped < 14; dumped += 2) {
      assertThat(table.find(hash(dumped), dumped, dumped))
          .as("block %d, which may not be durable, %s", dumped, when)
          .isEqualTo(SlabTable.NONE);
    }
  }

  private void requireAllSlabsCanBeTaken(String when) {
    SlabManager manager = manager(words, NEXT);
    Set<Integer> slabs = new HashSet<>();
    for (long id = 100; id < 100 + SLABS; id++) {
      int slab = manager.take(hash(id), id, id, 1, SlotWord.LOADING, 0);
      assertThat(slab).as("a slab for block %d, %s", id, when).isNotNegative();
      slabs.add(slab);
    }
    assertThat(slabs).as(when).hasSize(SLABS);
    assertThat(manager.take(hash(99), 99, 99, 0, SlotWord.LOADING, 0)).isEqualTo(SlabTable.NONE);
  }

  private static SlabManager manager(SegmentWords words, int owner) {
    return new SlabManager(words, LAYOUT, 0, owner, _ -> {});
  }

  private static SlabTable table(SegmentWords words, int owner) {
    return new SlabTable(words, LAYOUT, 0, owner);
  }

  private static long hash(long id) {
    return BlockTable.hash(id, id);
  }
}

package ucm.lite.policy;

import java.util.Arrays;
import ucm.lite.record.BlockNumbers;

/**
 * Doubly linked lists over block numbers; a block is in at most one of them. Links and list numbers
 * lie in arrays, 12 bytes a block. New blocks go to the head; the tail is the oldest.
 */
final class BlockLists {
  static final int NONE = -1;

  private final int[] newer;
  private final int[] older;
  private final int[] listOf;
  private int[] heads;
  private int[] tails;
  private int[] sizes;

  BlockLists(int blocks, int lists) {
    newer = new int[blocks];
    older = new int[blocks];
    listOf = BlockNumbers.table(blocks);
    heads = BlockNumbers.table(lists);
    tails = BlockNumbers.table(lists);
    sizes = new int[lists];
  }

  /** The list a block is in, or {@link #NONE}. */
  int listOf(int block) {
    return listOf[block];
  }

  int size(int list) {
    return sizes[list];
  }

  /** The block longest in a list, or {@link #NONE}. */
  int tail(int list) {
    return list < tails.length ? tails[list] : NONE;
  }

  /** Puts a block that is in no list at the head of one; there may be new lists. */
  void addHead(int list, int block) {
    if (list >= heads.length) {
      int before = heads.length;
      int length = Math.max(list + 1, 2 * before);
      heads = Arrays.copyOf(heads, length);
      tails = Arrays.copyOf(tails, length);
      sizes = Arrays.copyOf(sizes, length);
      Arrays.fill(heads, before, length, NONE);
      Arrays.fill(tails, before, length, NONE);
    }
    int head = heads[list];
    newer[block] = NONE;
    older[block] = head;
    if (head == NONE) {
      tails[list] = block;
    } else {
      newer[head] = block;
    }
    heads[list] = block;
    listOf[block] = list;
    sizes[list]++;
  }

  /** Takes a block out of its list. */
  void remove(int block) {
    int list = listOf[block];
    int next = newer[block];
    int previous = older[block];
    if (next == NONE) {
      heads[list] = previous;
    } else {
      older[next] = previous;
    }
    if (previous == NONE) {
      tails[list] = next;
    } else {
      newer[previous] = next;
    }
    listOf[block] = NONE;
    sizes[list]--;
  }

  /** Moves a block from its list to the head of one. */
  void moveToHead(int list, int block) {
    remove(block);
    addHead(list, block);
  }

  /** Takes the block longest in a list out of it. */
  int removeTail(int list) {
    int block = tails[list];
    remove(block);
    return block;
  }
}

package ucm.platform.libc;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import ucm.api.MemoryRegion;

/**
 * The memory of one vectored read or write: an array of {@code struct iovec} off the heap, written
 * over and over. Neighbours in memory become one entry. Not thread-safe.
 */
public final class IoVector {

  /** Most entries one call takes; IOV_MAX of Linux. */
  public static final int MAX_ENTRIES = 1024;

  // struct iovec { void *iov_base; size_t iov_len; }, both 8 bytes.
  private static final int ENTRY_BYTES = 16;
  private static final int LENGTH_AT = 8;

  // The addresses in a vector were checked when they were added.
  private static final MemorySegment MEMORY = wholeMemory();
  private final MemorySegment entries = Arena.ofAuto().allocate(MAX_ENTRIES * ENTRY_BYTES, 16);
  private int first;
  private int end;
  private long byteSize;

  /** Forgets all entries. */
  public IoVector clear() {
    first = 0;
    end = 0;
    byteSize = 0;
    return this;
  }

  /** Bytes of all entries. */
  public long byteSize() {
    return byteSize;
  }

  /** How many entries. */
  public int size() {
    return end - first;
  }

  /**
   * Adds a stretch of host memory. Its owner keeps it until what the vector is used for has ended.
   *
   * @throws IndexOutOfBoundsException when it does not lie within the region
   * @throws IllegalStateException when the vector is full, or the memory was freed
   */
  public IoVector add(MemoryRegion region, long offset, long length) {
    Objects.checkFromIndexSize(offset, length, region.byteSize());
    MemorySegment segment = region.segment();
    if (!segment.scope().isAlive()) {
      throw new IllegalStateException(
          "memory of a region is kept until the tasks that name it have ended; found memory that"
              + " was freed");
    }
    return add(segment.address() + offset, length);
  }

  /**
   * Adds a stretch of host memory that the processor will write; see {@link #add(MemoryRegion, long,
   * long)}.
   *
   * @throws IllegalArgumentException when it may only be read
   */
  public IoVector addToWrite(MemoryRegion region, long offset, long length) {
    if (region.segment().isReadOnly()) {
      throw new IllegalArgumentException(
          "blocks are loaded into memory that can be written; found a region that is read-only");
    }
    return add(region, offset, length);
  }

  /** Adds a segment of native memory; see {@link #add(MemoryRegion, long, long)}. */
  public IoVector add(MemorySegment segment) {
    if (!segment.isNative()) {
      throw new IllegalArgumentException("system calls take native memory; found " + segment);
    }
    return add(segment.address(), segment.byteSize());
  }

  /** Adds memory by its address; for classes that have checked it. */
  public IoVector add(long address, long length) {
    byteSize += length;
    if (end > first) {
      long last = (end - 1L) * ENTRY_BYTES;
      long lastLength = entries.get(ValueLayout.JAVA_LONG, last + LENGTH_AT);
      if (entries.get(ValueLayout.JAVA_LONG, last) + lastLength == address) {
        entries.set(ValueLayout.JAVA_LONG, last + LENGTH_AT, lastLength + length);
        return this;
      }
    }
    if (end == MAX_ENTRIES) {
      throw new IllegalStateException("an IoVector has at most " + MAX_ENTRIES + " entries");
    }
    put(end++, address, length);
    return this;
  }

  /**
   * Drops bytes at the front, those a call has moved.
   *
   * @param bytes 0 to {@link #byteSize()}
   */
  public void advance(long bytes) {
    Objects.checkIndex(bytes, byteSize + 1);
    byteSize -= bytes;
    long left = bytes;
    while (first < end) {
      long at = (long) first * ENTRY_BYTES;
      long length = entries.get(ValueLayout.JAVA_LONG, at + LENGTH_AT);
      if (length > left) {
        put(first, entries.get(ValueLayout.JAVA_LONG, at) + left, length - left);
        return;
      }
      left -= length;
      first++;
    }
  }

  /** Replaces what is here by the first bytes of another vector. */
  public IoVector setHead(IoVector of, long bytes) {
    Objects.checkIndex(bytes, of.byteSize + 1);
    clear();
    long left = bytes;
    for (int i = 0; left > 0; i++) {
      long length = Math.min(left, of.length(i));
      add(of.address(i), length);
      left -= length;
    }
    return this;
  }

  /** Where the memory of an entry is, counted from the first one left. */
  public long address(int entry) {
    return entries.get(ValueLayout.JAVA_LONG, (long) (first + entry) * ENTRY_BYTES);
  }

  /** Bytes of an entry, counted from the first one left. */
  public long length(int entry) {
    return entries.get(ValueLayout.JAVA_LONG, (long) (first + entry) * ENTRY_BYTES + LENGTH_AT);
  }

  /**
   * Copies bytes of the memory that the vector names.
   *
   * @param from which of its bytes is the first, counted over all entries
   * @param at where they go in {@code into}, in bytes
   * @throws IndexOutOfBoundsException when either has fewer bytes
   */
  public void copyTo(long from, MemorySegment into, long at, long length) {
    copy(from, into, at, length, true);
  }

  /** Copies bytes into the memory that the vector names; the counterpart of {@link #copyTo}. */
  public void copyFrom(long to, MemorySegment source, long at, long length) {
    copy(to, source, at, length, false);
  }

  private void copy(long start, MemorySegment other, long at, long length, boolean isOut) {
    Objects.checkFromIndexSize(start, length, byteSize);
    long skip = start;
    long done = 0;
    for (int entry = 0; done < length; entry++) {
      long part = Math.clamp(length(entry) - skip, 0, length - done);
      long address = address(entry) + skip;
      if (part > 0 && isOut) {
        MemorySegment.copy(MEMORY, address, other, at + done, part);
      } else if (part > 0) {
        MemorySegment.copy(other, at + done, MEMORY, address, part);
      }
      done += part;
      skip = Math.max(0, skip - length(entry));
    }
  }

  @SuppressWarnings("restricted")
  private static MemorySegment wholeMemory() {
    return MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
  }

  /** Where the entries are; for the class that makes the system call. */
  public long address() {
    return entries.address() + (long) first * ENTRY_BYTES;
  }

  private void put(int index, long address, long length) {
    long at = (long) index * ENTRY_BYTES;
    entries.set(ValueLayout.JAVA_LONG, at, address);
    entries.set(ValueLayout.JAVA_LONG, at + LENGTH_AT, length);
  }
}

package ucm.store.file.block;

import org.jspecify.annotations.Nullable;

/**
 * The open file of a block of which some shards were loaded and others are still to come, found to be
 * that of a whole block. Its users read side by side. Everything that changes is guarded by {@link
 * OpenBlocks}.
 */
final class OpenBlock {

  final long idHigh;
  final long idLow;
  final int fd;

  /** What {@link ucm.platform.libc.FileOperations#version} returned when the file was opened. */
  final long version;

  /** The checksums of its shards, or null when it has no footer. */
  final int @Nullable [] crcs;

  int users = 1;
  int shardsLeft;
  long lastNanos;
  boolean isKept;

  OpenBlock(long idHigh, long idLow, int fd, long version, int @Nullable [] crcs, int shards) {
    this.idHigh = idHigh;
    this.idLow = idLow;
    this.fd = fd;
    this.version = version;
    this.crcs = crcs;
    this.shardsLeft = shards;
  }
}

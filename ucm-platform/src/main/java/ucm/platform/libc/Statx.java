package ucm.platform.libc;

/** What {@code statx} is asked for, and where its answer is: constants of {@code linux/stat.h}. */
final class Statx {

  /** Ask for the type. */
  static final int TYPE = 0x1;

  /** Ask for the number of names. */
  static final int NLINK = 0x4;

  /** Ask for when the file or its attributes last changed. */
  static final int CTIME = 0x80;

  /** Ask for the size. */
  static final int SIZE = 0x200;

  /** Ask for all that {@code stat} returns. */
  static final int BASIC = 0x7ff;

  /** Bytes of {@code struct statx}. */
  static final int BYTES = 256;

  /** Offset of {@code __u32 stx_nlink} in {@code struct statx}. */
  static final int NLINK_AT = 16;

  /** Offset of {@code struct statx_timestamp stx_ctime} in {@code struct statx}. */
  static final int CTIME_AT = 96;

  /** Offset of {@code __u16 stx_mode} in {@code struct statx}. */
  static final int MODE_AT = 28;

  /** Offset of {@code __u64 stx_size} in {@code struct statx}. */
  static final int SIZE_AT = 40;

  /** Offset of {@code __u64 stx_ino} in {@code struct statx}. */
  static final int INODE_AT = 32;

  /** Offset of {@code __u64 stx_blocks}, in units of 512 bytes. */
  static final int BLOCKS_AT = 48;

  /** Offset of {@code stx_atime}: seconds in 64 bits, then nanoseconds in 32. */
  static final int ATIME_AT = 64;

  /** Offset of {@code stx_mtime}. */
  static final int MTIME_AT = 112;

  /** The bits of a mode that say the type. */
  static final int S_IFMT = 0xf000;

  /** The type of a folder. */
  static final int S_IFDIR = 0x4000;

  /** The type of a regular file. */
  static final int S_IFREG = 0x8000;

  private Statx() {}
}

package ucm.lite.insight;

import java.util.HexFormat;

/**
 * A prefix that many prompts begin with, as long as it stays (nearly) as frequent.
 *
 * @param lastBlockId the id of its last block: 32 hex digits
 * @param blocks its length
 * @param requests prompts that begin with it
 */
public record HotPrefix(String lastBlockId, int blocks, long requests) {
  static final int MOST = 10;

  /** A continuation this frequent belongs to the same hot prefix. */
  static final double AS_FREQUENT = 0.9;

  static HotPrefix of(long idHigh, long idLow, int blocks, long requests) {
    HexFormat hex = HexFormat.of();
    return new HotPrefix(hex.toHexDigits(idHigh) + hex.toHexDigits(idLow), blocks, requests);
  }
}

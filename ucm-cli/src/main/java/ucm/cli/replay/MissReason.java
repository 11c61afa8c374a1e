package ucm.cli.replay;

/** Why tokens of a prompt were not loaded. */
enum MissReason {
  NEVER_STORED("never_stored", "never stored before in this replay"),
  EVICTED("evicted", "stored before, and gone since"),
  CORRUPT("corrupt", "found damaged, now or before"),
  TOO_SHORT("too_short", "fill no block, or the request is below persist_token_threshold"),
  NOT_USED("not_used", "found, and left by hit_ratio or load_tokens_threshold"),
  STORE_DOWN("store_down", "a store refused, failed, or did not answer in time");

  private final String key;
  private final String text;

  MissReason(String key, String text) {
    this.key = key;
    this.text = text;
  }

  /** Its name in JSON. */
  String key() {
    return key;
  }

  /** What people read. */
  String text() {
    return text;
  }
}

package ucm.lite.record;

/** A cache, or many at once, that is shown every request of a trace in order. */
public interface PrefixModel {
  /** Looks all blocks of a request up, then touches all of them. */
  void accept(NumberedRequest request);
}

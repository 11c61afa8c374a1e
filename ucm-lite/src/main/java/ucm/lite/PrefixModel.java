package ucm.lite;

/** A cache, or many at once, that is shown every request of a trace in order. */
interface PrefixModel {
  /**
   * Looks all blocks of a request up, then touches all of them.
   *
   * @param request where the tokens come from
   * @param blocks numbers of its blocks in prompt order; only read, and only during the call
   * @param count how many entries of {@code blocks} are meant
   * @param known how many of the leading blocks were in some earlier request
   * @param distinct number of distinct blocks so far, this request included: all numbers are below
   */
  void accept(TraceRequest request, int[] blocks, int count, int known, int distinct);
}

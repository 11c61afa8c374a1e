package ucm.lite.tier;

import ucm.lite.record.NumberedRequest;

/** Is told where the prompt of each request was found, in the order of the trace. */
@FunctionalInterface
interface TierListener {
  /** What one request got; the tokens of the prompt not named were computed. */
  void served(NumberedRequest request, int hbmTokens, int dramTokens, int storageTokens);
}

/**
 * Names of blocks: a chain of hashes over the tokens of a prompt. Tokens go in, ids come out. It
 * knows no store.
 */
package ucm.pipeline.hash;

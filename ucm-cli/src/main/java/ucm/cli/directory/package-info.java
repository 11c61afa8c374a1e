/**
 * {@code ucm store}: what people do with directories of blocks. Directories or a configuration go
 * in, lists and counts come out. Formats of files are the stores' business.
 */
package ucm.cli.directory;

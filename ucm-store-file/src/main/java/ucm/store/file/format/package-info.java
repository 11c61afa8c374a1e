/**
 * The layout on disk: names of files and folders, the footer and its checksums, which directory
 * holds a block. Ids and bytes go in, paths and footers come out. It opens no file.
 */
package ucm.store.file.format;

package kuji

// VerifyFS is Verify on any file system.
var VerifyFS = verify

//! Every limit of the edge, each with its reason. Limits of the rules stand in `pa_domain::limits`.

use std::time::Duration;

/// Bytes of a GraphQL request: the longest message (256 KiB of text, escaped up to six times by a careless client) fits.
pub(crate) const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes of a refused body that are read and thrown away, so that the client can read the answer before the connection closes: three times the largest file that is
/// taken. Whoever goes on sending beyond it sees the connection end.
pub(crate) const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long the rest of a refused body is awaited: what common servers give a slow line.
pub(crate) const DISCARD_WITHIN: Duration = Duration::from_secs(30);
/// Bytes of a body that nobody wanted which are taken in before the answer goes out, so that the connection can be used again, and the time for them: a small request
/// that is on its way already. Beyond either the answer says that the connection closes.
pub(crate) const REST_BYTES_MAX: u64 = 256 * 1024;
pub(crate) const REST_WITHIN: Duration = Duration::from_millis(500);
/// Time for a whole GraphQL request to arrive: 2 MiB over a slow line.
pub(crate) const REQUEST_WITHIN: Duration = Duration::from_mins(1);
/// Time for a whole file to arrive: 20 MiB over a slow line of 35 KiB/s.
pub(crate) const UPLOAD_WITHIN: Duration = Duration::from_mins(10);
/// An upload of which no byte came for this long has been given up by its sender: a lost packet is sent again long before.
pub(crate) const UPLOAD_SILENT_MAX: Duration = Duration::from_secs(30);
/// Bytes of a GraphQL document: ten times the page's longest.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 64 * 1024;
/// Nested brackets in a document: the parser recurses, and 64 is more than any tool's introspection needs.
pub(crate) const NESTING_MAX: usize = 64;
/// Depth of a selection: introspection as tools send it goes to 15, our own types to 8.
pub(crate) const DEPTH_MAX: usize = 16;
/// Complexity: 200 messages with everything on them, through `nodes` and `edges` both.
pub(crate) const COMPLEXITY_MAX: usize = 16_000;
/// Aliases in one document: more than a person writes, far less than an amplification needs.
pub(crate) const ALIASES_MAX: usize = 30;
/// Selections of a document after all fragments are put in place, so that nested fragments can't multiply.
pub(crate) const SELECTIONS_MAX: usize = 2_000;
/// Directives on one selection.
pub(crate) const DIRECTIVES_MAX: usize = 8;
/// Time for one GraphQL request: a mutation waits 2 s, a query with `atLeast` 2 s, and statements have their own limit below this.
pub(crate) const EXECUTION_WITHIN: Duration = Duration::from_secs(20);

/// Entries of a page of messages or events (contract.md 4).
pub(crate) const PAGE_MAX: i32 = 200;
/// Entries of a page of messages when nothing is asked for.
pub(crate) const PAGE_DEFAULT: i32 = 50;
/// Characters of a request key: a UUID has 36; a key of a careful script has room.
pub(crate) const REQUEST_KEY_CHARS_MAX: usize = 200;
/// How long a mutation waits for its decision, a query for `atLeast`, and a subscription for its cursor (design.md 4 and 7).
pub(crate) const DECISION_WITHIN: Duration = Duration::from_secs(2);
/// How long a request waits for storage that is away, so that a restart of the database is a pause and no error; and the pause between two tries, of which each may
/// find one more connection dead.
pub(crate) const STORAGE_WITHIN: Duration = Duration::from_secs(2);
pub(crate) const STORAGE_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Mutations under way in one process: each holds a task and at most one record in memory.
pub(crate) const MUTATIONS_MAX: usize = 1_024;

/// How long a new socket may take for `connection_init`.
pub(crate) const INIT_WITHIN: Duration = Duration::from_secs(10);
/// The server pings every 20 s (contract.md 3).
pub(crate) const PING_EVERY: Duration = Duration::from_secs(20);
/// A socket that sent nothing, not even a pong, for this long is gone: two pings unanswered and a slow network.
pub(crate) const SILENT_MAX: Duration = Duration::from_mins(1);
/// A frame that a reader does not take for this long: the reader is too slow, and what waits for it must not grow.
pub(crate) const WRITE_WITHIN: Duration = Duration::from_secs(10);
/// Time for the last frame of a socket.
pub(crate) const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// Between two looks at whether the credentials of the open sockets still count: so soon a sign-out in another process ends them, for one small statement.
pub(crate) const CREDENTIALS_LOOKED_AT_EVERY: Duration = Duration::from_secs(2);
/// Subscriptions and requests under way on one socket: the page uses one.
pub(crate) const OPERATIONS_PER_SOCKET_MAX: usize = 16;
/// Sockets of one account: every tab of a few devices, and scripts.
pub(crate) const SOCKETS_PER_ACCOUNT_MAX: usize = 64;
/// Open sockets of one process, those that have not said who they are among them.
pub(crate) const SOCKETS_MAX: usize = 16_384;
/// Bytes of a socket's read buffer: small, because thousands of sockets are idle.
pub(crate) const SOCKET_READ_BYTES: usize = 4 * 1024;
/// Bytes that wait to be written to a socket at most: two of the longest frames.
pub(crate) const SOCKET_WRITE_BYTES_MAX: usize = 2 * REQUEST_BYTES_MAX;

/// Changes that `updates` catches up with; beyond it reading afresh is cheaper (design.md 7).
pub(crate) const CATCH_UP_MAX: i64 = 500;
/// How long a feed waits for a hint before it looks by itself, should one have been lost.
pub(crate) const FEED_LOOKS_EVERY: Duration = Duration::from_secs(5);

/// Characters of a file's name that are kept.
pub(crate) const FILE_NAME_CHARS_MAX: usize = 255;
/// Bytes of a media type that are accepted.
pub(crate) const MEDIA_TYPE_BYTES_MAX: usize = 200;
/// Uploads under way in one process: each holds one chunk in memory and an open file.
pub(crate) const UPLOADS_MAX: usize = 64;

/// Open connections of one process.
pub(crate) const CONNECTIONS_MAX: usize = 8_192;
/// Time for a request's head, so that a connection that trickles does not stay.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// Time for running requests when the process stops.
pub(crate) const STOP_WITHIN: Duration = Duration::from_secs(10);

/// Wrong credentials from one address before it must wait.
pub(crate) const WRONG_TRIES_MAX: u32 = 30;
/// One further try for each of these: about 43,000 guesses a day and address.
pub(crate) const WRONG_TRY_EVERY: Duration = Duration::from_secs(2);
/// Addresses that are remembered; beyond it the oldest is forgotten.
pub(crate) const WRONG_ADDRESSES_MAX: usize = 4_096;
/// Credentials remembered as right, whose owners are let in while somebody else guesses from the same address.
pub(crate) const RIGHT_HASHES_MAX: usize = 4_096;

/// A session without use for this long ends.
pub(crate) const SESSION_MILLIS: i64 = 30 * 24 * 60 * 60 * 1000;
/// A session's end is moved at most this often.
pub(crate) const SESSION_MOVES_EVERY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// Requests that fold a conversation's past at the same time: each may read thousands of events, and a small machine has two cores for everything.
pub(crate) const PAST_READS_MAX: usize = 2;
/// What a conversation of the past counts as, so that a document asks for a handful of them.
pub(crate) const PAST_COMPLEXITY: usize = 1_500;
/// Records read at once for the past, and the gap between two wanted ones that is read along.
pub(crate) const PAST_READ_RECORDS: i64 = 256;
pub(crate) const PAST_READ_GAP: i64 = 8;

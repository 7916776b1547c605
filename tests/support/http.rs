//! A small HTTP server in front of `git http-backend` that can lose an answer, drop a connection, or be down.

use super::Lab;
use super::remote::git_program;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// How the server treats what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Normal,
    /// A push reaches the repository; its answer is lost.
    DropAnswer,
    /// Likewise, and from then on the server is down.
    DropAnswerThenDown,
    /// Likewise, but for what a hook had to say.
    WordsOnly(&'static str),
    /// The connection of a push is closed before anything reaches the repository.
    DropBefore,
    /// Whoever wants to push is turned away.
    Forbidden,
    /// Every connection is closed at once.
    Down,
}

struct Shared {
    mode: Mutex<Mode>,
    /// Pushes that reached the repository.
    pushes: Mutex<usize>,
    backend: PathBuf,
    root: PathBuf,
    environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
}

/// The server; it ends with this value.
pub struct Http {
    shared: Arc<Shared>,
    listener: Listener,
}

impl Http {
    /// Serves what lies beneath `served/`; `None` where this git has no `http-backend` or no client for it.
    pub fn start(lab: &Lab) -> Option<Self> {
        git_program(lab, "git-remote-http")?;
        let backend = git_program(lab, "git-http-backend")?;
        let model = lab.command("git", &lab.path(""));
        let environment = model.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
        let shared = Arc::new(Shared {
            mode: Mutex::new(Mode::Normal),
            pushes: Mutex::new(0),
            backend,
            root: lab.path("served"),
            environment,
        });
        let theirs = Arc::clone(&shared);
        let listener = Listener::start(move |stream| theirs.serve(stream));
        Some(Self { shared, listener })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/app.git", self.listener.port)
    }

    /// The address with a name and a password in it.
    pub fn url_with(&self, user: &str) -> String {
        format!("http://{user}@127.0.0.1:{}/app.git", self.listener.port)
    }

    pub fn mode(&self, mode: Mode) {
        *self.shared.mode.lock().expect("lives") = mode;
    }

    /// How many pushes reached the repository.
    pub fn pushes(&self) -> usize {
        *self.shared.pushes.lock().expect("lives")
    }
}

/// A port on loopback and the thread that takes its connections; both end with this value.
pub struct Listener {
    pub port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Listener {
    /// Serves each connection in a thread of its own. A client that goes away in the middle is its own
    /// affair.
    pub fn start(serve: impl Fn(&TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let port = listener.local_addr().expect("bound").port();
        let stop = Arc::new(AtomicBool::new(false));
        let (serve, stopped) = (Arc::new(serve), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || drop(serve(&stream)));
            }
        });
        Self { port, stop, thread: Some(thread) }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A request, read to its end.
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn read(stream: &TcpStream) -> std::io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
                break;
            }
            if let Some((name, value)) = line.trim_end().split_once(':') {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        let mut request =
            Self { method, path: path.to_owned(), query: query.to_owned(), headers, body: Vec::new() };
        if request.header("expect").is_some() {
            (&mut &*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let length = request.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        request.body = vec![0; length];
        reader.read_exact(&mut request.body)?;
        Ok(request)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn is_push(&self) -> bool {
        self.method == "POST" && self.path.ends_with("/git-receive-pack")
    }
}

impl Shared {
    fn serve(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let mode = || *self.mode.lock().expect("lives");
        if mode() == Mode::Down {
            return stream.shutdown(Shutdown::Both);
        }
        let request = Request::read(stream)?;
        if request.is_push() && mode() == Mode::DropBefore {
            return stream.shutdown(Shutdown::Both);
        }
        let for_push = request.is_push() || request.query.contains("service=git-receive-pack");
        if for_push && mode() == Mode::Forbidden {
            let said = "no write access for bots";
            let head = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain\r\n";
            stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{said}", said.len()).as_bytes())?;
            return stream.shutdown(Shutdown::Both);
        }
        let answer = self.backend(&request)?;
        if request.is_push() {
            *self.pushes.lock().expect("lives") += 1;
            let now = mode();
            if now == Mode::DropAnswerThenDown {
                *self.mode.lock().expect("lives") = Mode::Down;
            }
            if matches!(now, Mode::DropAnswer | Mode::DropAnswerThenDown) {
                return stream.shutdown(Shutdown::Both);
            }
            if let Mode::WordsOnly(words) = now {
                let body = format!("{:04x}\u{2}{words}\n0000", words.len() + 6);
                let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
                let kind = "Content-Type: application/x-git-receive-pack-result\r\n";
                let length = format!("Content-Length: {}\r\n\r\n", body.len());
                stream.write_all([head, kind, &length, &body].concat().as_bytes())?;
                return stream.shutdown(Shutdown::Both);
            }
        }
        stream.write_all(&answer)?;
        stream.shutdown(Shutdown::Both)
    }

    /// Runs the backend by the rules of CGI; gives the whole answer.
    fn backend(&self, request: &Request) -> std::io::Result<Vec<u8>> {
        let mut command = Command::new(&self.backend);
        command.env_clear().envs(self.environment.iter().map(|(k, v)| (k, v)));
        command.env("GIT_PROJECT_ROOT", &self.root).env("GIT_HTTP_EXPORT_ALL", "1");
        command.env("REMOTE_USER", "bot").env("REMOTE_ADDR", "127.0.0.1");
        command.env("PATH_INFO", &request.path).env("QUERY_STRING", &request.query);
        command.env("REQUEST_METHOD", &request.method);
        command.env("CONTENT_TYPE", request.header("content-type").unwrap_or_default());
        command.env("CONTENT_LENGTH", request.body.len().to_string());
        for (header, variable) in
            [("content-encoding", "HTTP_CONTENT_ENCODING"), ("git-protocol", "HTTP_GIT_PROTOCOL")]
        {
            if let Some(value) = request.header(header) {
                command.env(variable, value);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let mut input = child.stdin.take().expect("piped");
        let body = request.body.clone();
        let feeder = std::thread::spawn(move || drop(input.write_all(&body)));
        let output = child.wait_with_output()?;
        feeder.join().expect("feeds");
        Ok(answered(&output.stdout))
    }
}

/// From the backend's headers and body to an answer of HTTP.
fn answered(output: &[u8]) -> Vec<u8> {
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let body = output.get(end + 4..).unwrap_or_default();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let mut answer = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for line in head.lines().filter(|line| !line.starts_with("Status: ")) {
        answer.push_str(line);
        answer.push_str("\r\n");
    }
    [answer.as_bytes(), b"\r\n", body].concat()
}

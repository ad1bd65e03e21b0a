//! TLS between a connection and its socket. Bytes in, bytes out: rustls does no I/O of its own.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use env::TcpStream;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConnection, Connection, Error, ServerConfig,
    ServerConnection,
};

use crate::certificates::Certificates;

/// What others are offered; a shard's connections to come take the certificates that are set last.
#[derive(Clone, Debug)]
pub struct Tls {
    certificates: Rc<RefCell<Certificates>>,
    /// May who connects do without?
    is_optional: bool,
}

impl Tls {
    /// With certificates to begin with.
    pub fn new(certificates: &Certificates, is_optional: bool) -> Self {
        Self { certificates: Rc::new(RefCell::new(certificates.clone())), is_optional }
    }

    /// Lets connections to come have other certificates.
    pub fn set(&self, certificates: &Certificates) {
        *self.certificates.borrow_mut() = certificates.clone();
    }
}

/// How a connection's bytes travel.
enum State {
    /// The first byte will say.
    Undecided,
    Plain,
    Encrypted(Box<Connection>),
}

/// The TLS of one connection.
pub struct TlsStream {
    state: State,
    /// Where another side began.
    config: Option<Arc<ServerConfig>>,
}

impl std::fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.state {
            State::Undecided => "Undecided",
            State::Plain => "Plain",
            State::Encrypted(_) => "Encrypted",
        })
    }
}

/// The first byte of a TLS handshake; a request of a client begins with its version, 3 to 5, or 66
/// where a driver asks for betas, a connection of a node with 0xCA.
pub const HANDSHAKE: u8 = 0x16;
/// Bytes of answers that may wait encrypted for the socket.
const MAX_ENCRYPTED: usize = 64 << 10;

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// A socket as rustls wants one.
struct Socket<'a>(&'a TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(out)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// None where a socket would make wait.
fn ready<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

impl TlsStream {
    /// Of a connection that another side opened. Certificates are to be good at `unix_micros`.
    ///
    /// # Errors
    /// If no session can be begun.
    pub fn accepting(tls: &Tls, unix_micros: i64) -> io::Result<Self> {
        let certificates = tls.certificates.borrow();
        certificates.clock.set(unix_micros);
        let config = Some(Arc::clone(&certificates.server));
        let mut stream = Self { state: State::Undecided, config };
        if !tls.is_optional {
            stream.begin()?;
        }
        Ok(stream)
    }

    /// Of a connection that this side opened. Certificates are to be good at `unix_micros`.
    ///
    /// # Errors
    /// If no session can be begun, or the certificates are not for dialing.
    pub fn dialing(tls: &Tls, to: IpAddr, unix_micros: i64) -> io::Result<Self> {
        let certificates = tls.certificates.borrow();
        certificates.clock.set(unix_micros);
        let config = certificates.client.clone();
        let config = config.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        let name = ServerName::IpAddress(to.into());
        let mut session = ClientConnection::new(config, name).map_err(invalid)?;
        session.set_buffer_limit(Some(MAX_ENCRYPTED));
        Ok(Self { state: State::Encrypted(Box::new(session.into())), config: None })
    }

    fn begin(&mut self) -> io::Result<()> {
        let config = self.config.take();
        let config = config.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        let mut session = ServerConnection::new(config).map_err(invalid)?;
        session.set_buffer_limit(Some(MAX_ENCRYPTED));
        self.state = State::Encrypted(Box::new(session.into()));
        Ok(())
    }

    /// Is it encrypted? What is not decided yet is not.
    pub fn is_encrypted(&self) -> bool {
        matches!(self.state, State::Encrypted(_))
    }

    /// Is the certificate that the other side showed one of an address? Not where it showed none.
    pub fn is_certified_as(&self, address: IpAddr) -> bool {
        let State::Encrypted(session) = &self.state else { return false };
        let shown = session.peer_certificates().and_then(|chain| chain.first());
        let Some(Ok(shown)) = shown.map(ParsedCertificate::try_from) else { return false };
        let name = ServerName::IpAddress(address.into());
        rustls::client::verify_server_name(&shown, &name).is_ok()
    }

    /// Reads what the other side sent, as [`TcpStream::try_read`] does.
    ///
    /// # Errors
    /// Of the socket, or if it is no TLS or not one that is agreed to.
    pub fn try_read(&mut self, socket: &TcpStream, out: &mut [u8]) -> io::Result<Option<usize>> {
        if matches!(self.state, State::Undecided) {
            let Some(n) = socket.try_read(out)? else { return Ok(None) };
            let first = out.get(..n).unwrap_or_default();
            if first.first() != Some(&HANDSHAKE) {
                if n > 0 {
                    self.state = State::Plain;
                }
                return Ok(Some(n));
            }
            self.begin()?;
            if let State::Encrypted(session) = &mut self.state {
                feed(session, socket, first)?;
            }
        }
        let State::Encrypted(session) = &mut self.state else { return socket.try_read(out) };
        loop {
            match session.reader().read(out) {
                Ok(n) => return Ok(Some(n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // cut off without a farewell, as clients do
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(0)),
                Err(error) => return Err(error),
            }
            match ready(session.read_tls(&mut Socket(socket)))? {
                None => return Ok(None),
                Some(0) => return Ok(Some(0)),
                Some(_) => process(session, socket)?,
            }
        }
    }

    /// Writes what fits, as [`TcpStream::try_write`] does; some of it may wait for [`Self::flush`].
    ///
    /// # Errors
    /// Of the socket.
    pub fn try_write(&mut self, socket: &TcpStream, bytes: &[u8]) -> io::Result<Option<usize>> {
        let State::Encrypted(session) = &mut self.state else { return socket.try_write(bytes) };
        let taken = session.writer().write(bytes)?;
        send(session, socket)?;
        Ok((taken > 0).then_some(taken))
    }

    /// Writes what waits encrypted; true when nothing is left.
    ///
    /// # Errors
    /// Of the socket.
    pub fn flush(&mut self, socket: &TcpStream) -> io::Result<bool> {
        match &mut self.state {
            State::Encrypted(session) => send(session, socket),
            _ => Ok(true),
        }
    }

    /// Protocol and cipher suite as Java names them, once they are agreed on.
    pub fn agreed(&self) -> Option<(String, String)> {
        let State::Encrypted(session) = &self.state else { return None };
        let protocol = match session.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2".to_owned(),
            rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3".to_owned(),
            other => format!("{other:?}"),
        };
        let suite = format!("{:?}", session.negotiated_cipher_suite()?.suite());
        Some((protocol, suite.replacen("TLS13_", "TLS_", 1)))
    }

    /// Does anything wait encrypted?
    pub fn is_flushed(&self) -> bool {
        match &self.state {
            State::Encrypted(session) => !session.wants_write(),
            _ => true,
        }
    }

    /// Says farewell, as far as the socket takes it.
    pub fn end(&mut self, socket: &TcpStream) {
        if let State::Encrypted(session) = &mut self.state {
            session.send_close_notify();
            // who has gone needs no farewell
            let _ = send(session, socket);
        }
    }
}

/// Gives a session bytes that were read already.
fn feed(session: &mut Connection, socket: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        session.read_tls(&mut bytes)?;
        process(session, socket)?;
    }
    Ok(())
}

/// Goes through what was read, and sends what answers it: a handshake's next step, or why there is
/// none.
fn process(session: &mut Connection, socket: &TcpStream) -> io::Result<()> {
    let processed = session.process_new_packets();
    send(session, socket)?;
    processed.map(drop).map_err(invalid)
}

fn send(session: &mut Connection, socket: &TcpStream) -> io::Result<bool> {
    while session.wants_write() {
        match ready(session.write_tls(&mut Socket(socket)))? {
            None => return Ok(false),
            Some(0) => return Err(io::ErrorKind::WriteZero.into()),
            Some(_) => {}
        }
    }
    Ok(true)
}

/// Why a connection failed, in words for who runs the node.
pub fn explain(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        None => error.to_string(),
        Some(Error::InvalidCertificate(what)) => format!("its certificate {}", fault(what)),
        Some(Error::NoCertificatesPresented) => {
            "it sent no certificate, which require_client_auth requires".to_owned()
        }
        Some(Error::InvalidMessage(_)) => "it does not speak TLS".to_owned(),
        Some(Error::AlertReceived(alert)) => format!("it rejected this node: {}", refusal(*alert)),
        Some(Error::PeerIncompatible(what)) => {
            format!("both sides have no TLS protocol and cipher suite in common: {what:?}")
        }
        Some(other) => other.to_string(),
    }
}

fn fault(error: &CertificateError) -> String {
    use CertificateError::*;
    match error {
        UnknownIssuer => "is signed by no authority in the truststore".to_owned(),
        Expired | ExpiredContext { .. } => "has expired".to_owned(),
        NotValidYet | NotValidYetContext { .. } => "is not valid yet".to_owned(),
        NotValidForName | NotValidForNameContext { .. } => "does not have its address".to_owned(),
        other => format!("is not accepted: {other}"),
    }
}

fn refusal(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA => {
            "it does not trust the authority of this node's certificate".to_owned()
        }
        AlertDescription::CertificateExpired => "this node's certificate has expired".to_owned(),
        AlertDescription::CertificateRequired => {
            "it requires a certificate from this node".to_owned()
        }
        other => format!("it sent the TLS alert {other:?}; see its log"),
    }
}

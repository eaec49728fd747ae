/** The page's icons, drawn in the colour of the text around them. */
import type { ReactNode } from 'react';

function icon(paths: ReactNode): () => ReactNode {
  return function Icon() {
    return (
      <svg className="icon" viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.8" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
        {paths}
      </svg>
    );
  };
}

export const PlusIcon = icon(<path d="M12 5v14M5 12h14" />);
export const SendIcon = icon(<path d="M12 19V5.500M6 11l6-6 6 6" />);
export const StopIcon = icon(<rect x="7" y="7" width="10" height="10" rx="2" fill="currentColor" stroke="none" />);
export const CopyIcon = icon(
  <>
    <rect x="9" y="9" width="11" height="11" rx="2.500" />
    <path d="M5.500 15H5a1.500 1.500 0 0 1-1.500-1.500V5A1.500 1.500 0 0 1 5 3.500h8.500A1.500 1.500 0 0 1 15 5v.500" />
  </>,
);
export const CheckIcon = icon(<path d="M5 12.500l4.500 4.500L19 7.500" />);
export const CloseIcon = icon(<path d="M6 6l12 12M18 6L6 18" />);
export const MenuIcon = icon(
  <>
    <circle cx="5.500" cy="12" r="1.500" fill="currentColor" stroke="none" />
    <circle cx="12" cy="12" r="1.500" fill="currentColor" stroke="none" />
    <circle cx="18.500" cy="12" r="1.500" fill="currentColor" stroke="none" />
  </>,
);
export const DownIcon = icon(<path d="M12 5v14M6 13l6 6 6-6" />);
export const ClockIcon = icon(
  <>
    <circle cx="12" cy="12" r="8.500" />
    <path d="M12 7.500V12l3 2" />
  </>,
);
export const AlertIcon = icon(
  <>
    <circle cx="12" cy="12" r="8.500" />
    <path d="M12 7.800v5M12 16.200v.010" />
  </>,
);
export const FileIcon = icon(
  <>
    <path d="M14 3.500H7A1.500 1.500 0 0 0 5.500 5v14A1.500 1.500 0 0 0 7 20.500h10a1.500 1.500 0 0 0 1.500-1.500V8z" />
    <path d="M14 3.500V8h4.500" />
  </>,
);
export const SettingsIcon = icon(
  <>
    <path d="M4 7.500h9M17.500 7.500H20M4 16.500h2.500M11 16.500h9" />
    <circle cx="15.200" cy="7.500" r="2.300" />
    <circle cx="8.800" cy="16.500" r="2.300" />
  </>,
);
export const PulseIcon = icon(<path d="M3 12.500h4l2.500-6.500 4.500 12 2.500-5.500h4.500" />);
export const ReplyIcon = icon(<path d="M9 7L4.500 11.500 9 16M5 11.500h9a5 5 0 0 1 5 5v1" />);
export const PauseIcon = icon(<path d="M9 7v10M15 7v10" />);
export const TasksIcon = icon(<path d="M4 6.500l1.500 1.500L8 5.500M4 12.500l1.500 1.500L8 11.500M4 18.500l1.500 1.500L8 17.500M11.500 7H20M11.500 13H20M11.500 19H20" />);
export const EyeIcon = icon(
  <>
    <path d="M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12z" />
    <circle cx="12" cy="12" r="2.800" />
  </>,
);
export const MailIcon = icon(
  <>
    <rect x="3.500" y="5.500" width="17" height="13" rx="2" />
    <path d="M4 7.500l8 5.500 8-5.500" />
  </>,
);
export const ComputerIcon = icon(
  <>
    <rect x="3.500" y="5" width="17" height="11" rx="1.500" />
    <path d="M9 20h6M12 16v4" />
  </>,
);
export const OfflineIcon = icon(<path d="M3 4l17 16M8.500 16a5 5 0 0 1 6.500-.300M5 12.500a10 10 0 0 1 4-2.300M2.500 9a14 14 0 0 1 3.500-2.300M13 6.600A14 14 0 0 1 21.500 9M15.500 11a10 10 0 0 1 3.500 1.500M12 19.200v.010" />);
export const SignOutIcon = icon(<path d="M10 4.500H6.500A1.500 1.500 0 0 0 5 6v12a1.500 1.500 0 0 0 1.500 1.500H10M14.500 8l4 4-4 4M18 12H9.500" />);
export const SignOutEverywhereIcon = icon(
  <>
    <rect x="3.500" y="5" width="11.500" height="9" rx="1.500" />
    <path d="M7 18h5M9.300 14v4M18 9l2.500 2.500L18 14M20.300 11.500H17.500" />
  </>,
);

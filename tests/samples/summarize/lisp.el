;;; oar.el --- Row boats from Emacs  -*- lexical-binding: t -*-

;; Copyright (C) 1994 Ada Björk
;; Author: Ada Björk <ada@example.org>
;; Keywords: boats, rivers
;; Version: 1.2
;; URL: http://example.org/oars

;;; Commentary:

;; Rows boats with `M-x oar-row'.
;; It knows nothing of sails.

;;; Code:

(require 'subr-x)

(defgroup oar nil "Rowing." :group 'games)

(defun oar-row (strokes)
  "Row so many STROKES.
;; not a comment"
  (interactive "p")
  (dotimes (_ strokes) (oar-pull)))

(defmacro oar-with-boat (boat &rest body)
  `(let ((boat ,boat)) ,@body))

(cl-defstruct oar-boat name)

;; Pulls once.
(defsubst oar-pull () nil)

(provide 'oar)
;;; oar.el ends here
